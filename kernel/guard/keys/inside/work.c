// SPDX-License-Identifier: GPL-2.0-only
/*
 * The inside of guard-keys.ko: the keys, and all that is done with them. enter.S enters it.
 *
 * Everything becomes one function, keys_work(), that calls nothing: so no return address of the
 * inside is in memory, and the size of its stack is known. All that is writable here is private
 * (inside.lds), except the exchange. Nothing that depends on a secret decides on a branch or an
 * address; tests/guard/keys_inside verifies that.
 */
#include "guard/keys/inside/gcm.h"
#include "guard/keys/inside/inside.h"
#include "guard/keys/inside/sha256.h"

/* A nonce is a prefix, which is random for each key that is put or made, and a counter. */
#define PREFIX	8
#define LAST_USE	0xffffffff

/* The bytes that one draw makes. */
#define DRAWN	64

/* In ECX of CPUID's leaf 1. */
#define CPUID_RDRAND	0x40000000

struct key {
	u64 handle;		/* 0: there is no key here */
	u64 file;		/* 0: the key is kept */
	u64 user;
	u32 kind;
	u32 usage;
	u64 uses;
	u8 prefix[PREFIX];
	u8 name[KEYS_NAME];
	union {
		struct gcm_key cipher;
		struct hmac_key signer;
	};
};

struct keys_exchange keys_exchange;

static struct key keys_table[KEYS_MAX];
static struct keys_request request;
static u8 extra[KEYS_EXTRA], text[KEYS_TEXT];
static u8 keys_pool[SHA256_DIGEST];

/* A random number of the processor's; 0 if it has none to give. */
static u64 processor_random(void)
{
	u32 a = 1, b, c = 0, d, tries;
	u64 value = 0;
	u8 good = 0;

	asm volatile("cpuid" : "+a" (a), "=b" (b), "+c" (c), "=d" (d));
	if (!(c & CPUID_RDRAND))
		return 0;
	for (tries = 0; tries < 10 && !good; tries++)
		asm volatile("rdrand %0; setc %1" : "=r" (value), "=qm" (good) : : "cc");
	return good ? value : 0;
}

/*
 * Makes random bytes. Each draw first adds the caller's seed and the processor's numbers to the
 * pool: to know the bytes one has to know all three, the pool, the seed and the processor's
 * numbers. At its end the pool moves on, so that it does not tell what was drawn.
 */
static void draw(u8 bytes[DRAWN])
{
	u8 message[1 + KEYS_SEED + 32] = { 0 };
	struct hmac_key key;
	u32 i;

	copy(message + 1, request.seed, KEYS_SEED);
	for (i = 0; i < 4; i++)
		store64(message + 1 + KEYS_SEED + 8 * i, processor_random());
	for (i = 0; i < 4; i++) {
		u8 *to = i == 1 ? bytes : i == 2 ? bytes + SHA256_DIGEST : keys_pool;

		message[0] = i;
		hmac_set_key(&key, keys_pool, SHA256_DIGEST);
		hmac(&key, message, i ? 1 : sizeof(message), to);
	}
	clear(message, sizeof(message));
	clear(&key, sizeof(key));
}

static int is_visible(const struct key *key)
{
	if (!key->handle)
		return 0;
	return key->file ? key->file == request.file : key->user == request.user;
}

static struct key *find(void)
{
	u32 i;

	for (i = 0; i < KEYS_MAX; i++)
		if (is_visible(&keys_table[i]) && keys_table[i].handle == request.handle)
			return &keys_table[i];
	return 0;
}

static int is_same_name(const u8 *a, const u8 *b)
{
	u32 i;

	for (i = 0; i < KEYS_NAME; i++)
		if (a[i] != b[i])
			return 0;
	return 1;
}

/* A free place for the key that is asked for. */
static long find_free(struct key **free)
{
	u32 i, count = 0;

	*free = 0;
	for (i = 0; i < KEYS_MAX; i++) {
		struct key *key = &keys_table[i];

		if (!key->handle) {
			if (!*free)
				*free = key;
			continue;
		}
		count += key->user == request.user;
		if (request.kept && !key->file && key->user == request.user &&
		    is_same_name(key->name, request.name))
			return -EEXIST;
	}
	if (request.user && count >= KEYS_PER_USER)
		return -EDQUOT;
	return *free ? 0 : -ENOSPC;
}

/* Adds a key; or only adds to the pool. */
static long add(void)
{
	int is_given = request.op == KEYS_PUT;
	u32 can = request.kind == KEYS_CIPHER ? KEYS_CAN_ENCRYPT | KEYS_CAN_DECRYPT :
						KEYS_CAN_SIGN | KEYS_CAN_VERIFY;
	const u8 *secret;
	u8 drawn[DRAWN] = { 0 };
	struct key *key;
	u32 length = 32;
	long err;

	draw(drawn);
	if (request.op == KEYS_STIR)
		return 0;
	if (request.kind != KEYS_CIPHER && request.kind != KEYS_SIGNER)
		return -EINVAL;
	if (!request.usage || request.usage & ~can || request.kept > 1)
		return -EINVAL;
	if (!request.file || (request.kept && !request.name[0]))
		return -EINVAL;
	if (is_given) {
		length = request.secret_length;
		if (length < (request.kind == KEYS_CIPHER ? 32 : 16) ||
		    length > (request.kind == KEYS_CIPHER ? 32 : KEYS_SECRET))
			return -EINVAL;
	}
	err = find_free(&key);
	if (err)
		return err;

	secret = is_given ? request.secret : drawn;
	key->file = request.kept ? 0 : request.file;
	key->user = request.user;
	key->kind = request.kind;
	key->usage = request.usage;
	key->uses = 0;
	copy(key->prefix, drawn + 32, PREFIX);
	copy(key->name, request.name, KEYS_NAME);
	if (request.kind == KEYS_CIPHER)
		gcm_set_key(&key->cipher, secret);
	else
		hmac_set_key(&key->signer, secret, length);
	/* It names the key and tells nothing about it; 0 names none. */
	key->handle = load64(drawn + 40) | 1;
	keys_exchange.request.handle = key->handle;
	clear(drawn, sizeof(drawn));
	return 0;
}

static long usable(struct key **key, u32 usage)
{
	*key = find();
	if (!*key)
		return -ENOENT;
	return (*key)->usage & usage ? 0 : -EPERM;
}

/* Encrypts, or decrypts: then a text whose tag is wrong becomes zeros. */
static long crypt(int encrypts)
{
	u32 length = request.text_length, extra_length = request.extra_length, i;
	u8 nonce[KEYS_NONCE], tag[KEYS_TAG];
	struct key *key;
	u64 good = 1;
	long err;

	if (length > KEYS_TEXT || extra_length > KEYS_EXTRA)
		return -EMSGSIZE;
	err = usable(&key, encrypts ? KEYS_CAN_ENCRYPT : KEYS_CAN_DECRYPT);
	if (err)
		return err;
	copy(nonce, request.nonce, KEYS_NONCE);
	if (encrypts) {
		if (key->uses == LAST_USE)
			return -EKEYEXPIRED;
		key->uses++;
		copy(nonce, key->prefix, PREFIX);
		store32(nonce + PREFIX, __builtin_bswap32(key->uses));
	}
	copy_shared(text, keys_exchange.text, length);
	copy_shared(extra, keys_exchange.extra, extra_length);
	gcm(&key->cipher, encrypts, nonce, extra, extra_length, text, length, tag);
	if (encrypts) {
		copy(keys_exchange.request.nonce, nonce, KEYS_NONCE);
		copy(keys_exchange.request.tag, tag, KEYS_TAG);
	} else {
		good = is_same(tag, request.tag, KEYS_TAG);
	}
	for (i = 0; i < length; i++)
		text[i] &= -good;
	copy(keys_exchange.text, text, length);
	clear(text, length);
	clear(extra, extra_length);
	clear(tag, sizeof(tag));
	return -(long)((1 - good) * EBADMSG);
}

static long sign(int verifies)
{
	u32 length = request.text_length;
	u8 signature[KEYS_SIGNATURE];
	struct key *key;
	u64 good = 1;
	long err;

	if (length > KEYS_TEXT)
		return -EMSGSIZE;
	err = usable(&key, verifies ? KEYS_CAN_VERIFY : KEYS_CAN_SIGN);
	if (err)
		return err;
	copy_shared(text, keys_exchange.text, length);
	hmac(&key->signer, text, length, signature);
	if (verifies) {
		good = is_same(signature, request.signature, KEYS_SIGNATURE);
	} else {
		key->uses++;
		copy(keys_exchange.request.signature, signature, KEYS_SIGNATURE);
	}
	clear(text, length);
	clear(signature, sizeof(signature));
	return -(long)((1 - good) * EKEYREJECTED);
}

static long list(void)
{
	struct keys_request *result = &keys_exchange.request;
	u32 i;

	for (i = request.index; i < KEYS_MAX; i++) {
		const struct key *key = &keys_table[i];

		if (!is_visible(key))
			continue;
		result->index = i;
		result->handle = key->handle;
		result->kind = key->kind;
		result->usage = key->usage;
		result->kept = !key->file;
		result->uses = key->uses;
		copy(result->name, key->name, KEYS_NAME);
		return 0;
	}
	return -ENOENT;
}

static long forget(void)
{
	struct key *key = find();

	if (!key)
		return -ENOENT;
	keys_exchange.request.kept = !key->file;
	clear(key, sizeof(*key));
	return 0;
}

static long forget_file(void)
{
	u32 i;

	for (i = 0; i < KEYS_MAX; i++) {
		struct key *key = &keys_table[i];

		if (key->handle && key->file && key->file == request.file)
			clear(key, sizeof(*key));
	}
	return 0;
}

static long status(void)
{
	u32 i, count = 0;

	for (i = 0; i < KEYS_MAX; i++)
		count += keys_table[i].handle != 0;
	keys_exchange.request.index = count;
	keys_exchange.request.guarded = request.guarded;
	return 0;
}

static long work(void)
{
	switch (request.op) {
	case KEYS_STIR:
	case KEYS_PUT:
	case KEYS_GENERATE:
		return add();
	case KEYS_ENCRYPT:
	case KEYS_DECRYPT:
		return crypt(request.op == KEYS_ENCRYPT);
	case KEYS_SIGN:
	case KEYS_VERIFY:
		return sign(request.op == KEYS_VERIFY);
	case KEYS_LIST:
		return list();
	case KEYS_FORGET:
		return forget();
	case KEYS_FORGET_FILE:
		return forget_file();
	case KEYS_STATUS:
		return status();
	default:
		return -EINVAL;
	}
}

__attribute__((flatten)) long keys_work(int guarded)
{
	long result;

	copy_shared(&request, &keys_exchange.request, sizeof(request));
	clear(keys_exchange.request.secret, KEYS_SECRET + KEYS_SEED);
	request.guarded = guarded;
	result = work();
	clear(&request, sizeof(request));
	return result;
}
