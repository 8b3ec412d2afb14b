// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The answers of the inside of guard-keys.ko are those of the standards and of openssl: known
 * answers (the GCM specification's test cases 13 to 16, RFC 4231's 1, 3 and 4), and random keys,
 * lengths and texts; ROUNDS is their number. Fails when one differs, when a message that was
 * changed in one bit is accepted, when a refused text is anything but zeros, or when a nonce comes
 * twice.
 */
#include "caller.h"
#include "openssl.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

static u64 state = 1;

static u32 number(u32 below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 20) % below;
}

static void fill(u8 *at, u32 length)
{
	while (length--)
		*at++ = number(256);
}

static u32 from_hex(u8 *to, const char *hex)
{
	u32 length = strlen(hex) / 2, i;

	for (i = 0; i < length; i++)
		to[i] = strtoul((char[]){ hex[2 * i], hex[2 * i + 1], 0 }, NULL, 16);
	return length;
}

#define KEY	"feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308"
#define NONCE	"cafebabefacedbaddecaf888"
#define TEXT	"d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72" \
		"1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
#define CRYPTED	"522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa" \
		"8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"

static const struct {
	const char *key, *nonce, *extra, *crypted, *tag, *text;
} ciphers[] = {
	{ "0000000000000000000000000000000000000000000000000000000000000000",
	  "000000000000000000000000", "", "", "530f8afbc74536b9a963b4f1c4cb738b", "" },
	{ "0000000000000000000000000000000000000000000000000000000000000000",
	  "000000000000000000000000", "", "cea7403d4d606b6e074ec5d3baf39d18",
	  "d0d1c8a799996bf0265b98b5d48ab919", "00000000000000000000000000000000" },
	{ KEY, NONCE, "", CRYPTED "898015ad", "b094dac5d93471bdec1a502270e3cc6c",
	  TEXT "1aafd255" },
	{ KEY, NONCE, "feedfacedeadbeeffeedfacedeadbeefabaddad2", CRYPTED,
	  "76fc6ece0f4e1768cddf8853bb2d551b", TEXT },
};

static const struct {
	const char *key;
	const char *text;
	u8 byte;	/* or 50 times this byte */
	const char *signature;
} signers[] = {
	{ "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "4869205468657265", 0,
	  "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
	{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", NULL, 0xdd,
	  "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe" },
	{ "0102030405060708090a0b0c0d0e0f10111213141516171819", NULL, 0xcd,
	  "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b" },
};

static void known_answers(void)
{
	u8 secret[64], wanted[64];
	u32 i, length, extra;
	u64 handle;
	long err;

	for (i = 0; i < sizeof(ciphers) / sizeof(ciphers[0]); i++) {
		handle = put(KEYS_CIPHER, secret, from_hex(secret, ciphers[i].key));
		begin_request();
		from_hex(request.nonce, ciphers[i].nonce);
		from_hex(request.tag, ciphers[i].tag);
		extra = from_hex(keys_exchange.extra, ciphers[i].extra);
		length = from_hex(keys_exchange.text, ciphers[i].crypted);
		err = use(KEYS_DECRYPT, handle, length, extra);
		from_hex(wanted, ciphers[i].text);
		ok(!err && !memcmp(keys_exchange.text, wanted, length),
		   "test case %u of the GCM specification", 13 + i);
		forget(handle);
	}
	for (i = 0; i < sizeof(signers) / sizeof(signers[0]); i++) {
		handle = put(KEYS_SIGNER, secret, from_hex(secret, signers[i].key));
		begin_request();
		length = 50;
		memset(keys_exchange.text, signers[i].byte, length);
		if (signers[i].text)
			length = from_hex(keys_exchange.text, signers[i].text);
		err = use(KEYS_SIGN, handle, length, 0);
		from_hex(wanted, signers[i].signature);
		ok(!err && !memcmp(request.signature, wanted, 32), "HMAC of RFC 4231, key %s",
		   signers[i].key);
		forget(handle);
	}
}

static u32 any_length(void)
{
	switch (number(8)) {
	case 0:
		return number(KEYS_TEXT + 1);
	case 1:
		return 16 * number(40);
	default:
		return number(300);
	}
}

static bool is_zero(const u8 *at, u32 length)
{
	while (length--)
		if (*at++)
			return false;
	return true;
}

/* The message in the exchange, with one bit changed, is refused, and its text becomes zeros. */
static bool refuses_changed(u64 handle, u32 length, u32 extra)
{
	u8 *places[] = { keys_exchange.text, keys_exchange.extra, request.tag, request.nonce };
	u32 sizes[] = { length, extra, KEYS_TAG, KEYS_NONCE }, i = number(4);

	if (!sizes[i])
		i = 2;
	places[i][number(sizes[i])] ^= 1 << number(8);
	return use(KEYS_DECRYPT, handle, length, extra) == -EBADMSG &&
	       is_zero(keys_exchange.text, length);
}

static bool cipher_round(void)
{
	static u8 text[KEYS_TEXT], crypted[KEYS_TEXT];
	u8 secret[32], nonce[KEYS_NONCE], tag[KEYS_TAG], extra[KEYS_EXTRA], last[KEYS_NONCE];
	u32 length = any_length(), extra_length = number(KEYS_EXTRA + 1), times;
	bool good = true;
	u64 handle;

	fill(secret, sizeof(secret));
	handle = put(KEYS_CIPHER, secret, sizeof(secret));
	for (times = 0; times < 2; times++) {
		fill(text, length);
		fill(extra, extra_length);
		begin_request();
		memcpy(keys_exchange.text, text, length);
		memcpy(keys_exchange.extra, extra, extra_length);
		good = good && !use(KEYS_ENCRYPT, handle, length, extra_length);
		if (times)
			good = good && memcmp(last, request.nonce, KEYS_NONCE);
		memcpy(last, request.nonce, KEYS_NONCE);
		memcpy(crypted, text, length);
		openssl_encrypt(secret, request.nonce, extra, extra_length, crypted, length, tag);
		good = good && !memcmp(tag, request.tag, KEYS_TAG) &&
		       !memcmp(crypted, keys_exchange.text, length);

		/* A message with a nonce of somebody else's. */
		begin_request();
		fill(nonce, sizeof(nonce));
		memcpy(crypted, text, length);
		openssl_encrypt(secret, nonce, extra, extra_length, crypted, length, tag);
		memcpy(keys_exchange.text, crypted, length);
		memcpy(request.nonce, nonce, KEYS_NONCE);
		memcpy(request.tag, tag, KEYS_TAG);
		good = good && !use(KEYS_DECRYPT, handle, length, extra_length) &&
		       !memcmp(keys_exchange.text, text, length);
		memcpy(keys_exchange.text, crypted, length);
		good = good && refuses_changed(handle, length, extra_length);
	}
	return !forget(handle) && good;
}

static bool signer_round(void)
{
	u8 secret[KEYS_SECRET], wanted[KEYS_SIGNATURE];
	u32 length = any_length(), secret_length = 16 + number(49);
	bool good;
	u64 handle;

	fill(secret, secret_length);
	handle = put(KEYS_SIGNER, secret, secret_length);
	begin_request();
	fill(keys_exchange.text, length);
	openssl_sign(secret, secret_length, keys_exchange.text, length, wanted);
	good = !use(KEYS_SIGN, handle, length, 0) &&
	       !memcmp(wanted, request.signature, KEYS_SIGNATURE) &&
	       !use(KEYS_VERIFY, handle, length, 0);
	request.signature[number(KEYS_SIGNATURE)] ^= 1 << number(8);
	good = good && use(KEYS_VERIFY, handle, length, 0) == -EKEYREJECTED;
	return !forget(handle) && good;
}

int main(void)
{
	const char *rounds = getenv("ROUNDS"), *problem = openssl_load();
	u32 count = rounds ? strtoul(rounds, NULL, 0) : 5000, i, bad = 0;

	known_answers();
	if (problem) {
		skip(problem, "openssl's answers");
		return done();
	}
	for (i = 0; i < count; i++)
		bad += !cipher_round();
	is(bad, 0, "%u random keys encrypt and decrypt two texts as openssl does", count);
	for (bad = 0, i = 0; i < count; i++)
		bad += !signer_round();
	is(bad, 0, "%u random keys sign as openssl does", count);
	return done();
}
