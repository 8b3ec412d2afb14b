// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * For valgrind, which reports each branch and address that depends on a byte that was marked as
 * undefined. Here these are the secrets: keys, texts, seeds, the pool, and what was made of them.
 * Only what anybody may know is marked as defined again: handles, nonces, and results. "constant
 * broken" then has a branch and an address that depend on a key, which valgrind has to report.
 */
#include "guard/keys/inside/work.c"

#include <stdio.h>
#include <string.h>
#include <valgrind/memcheck.h>

/* The work is done at any cost: results are not looked at before they are marked. */
#define HIDE(at, length)	VALGRIND_MAKE_MEM_UNDEFINED(at, length)
#define SHOW(at, length)	VALGRIND_MAKE_MEM_DEFINED(at, length)

static struct keys_request *const r = &keys_exchange.request;

static long ask(u32 op, long wanted)
{
	long result;

	r->op = op;
	r->file = 1;
	result = keys_work(0);
	SHOW(&result, sizeof(result));
	if (result != wanted)
		fprintf(stderr, "request %u: %ld and not %ld\n", op, result, wanted);
	return result != wanted;
}

static int new_key(u32 op, u32 kind, u32 length)
{
	int bad;

	memset(r, 0, sizeof(*r));
	memset(r->secret, 0x77, length);
	HIDE(r->secret, sizeof(r->secret));
	HIDE(r->seed, sizeof(r->seed));
	HIDE(keys_pool, sizeof(keys_pool));
	r->kind = kind;
	r->usage = kind == KEYS_CIPHER ? 3 : 12;
	r->secret_length = length;
	bad = ask(op, 0);
	SHOW(&keys_table[0].handle, sizeof(u64));
	SHOW(keys_table[0].prefix, PREFIX);
	r->handle = keys_table[0].handle;
	return bad;
}

static void hide_text(u32 length)
{
	memset(keys_exchange.text, 0x33, length);
	HIDE(keys_exchange.text, length);
	r->text_length = length;
}

static int cipher(u32 op, u32 length)
{
	int bad = new_key(op, KEYS_CIPHER, 32);

	hide_text(length);
	memset(keys_exchange.extra, 0x44, 20);
	HIDE(keys_exchange.extra, 20);
	r->extra_length = 20;
	bad |= ask(KEYS_ENCRYPT, 0);
	SHOW(r->nonce, KEYS_NONCE);
	bad |= ask(KEYS_DECRYPT, 0);
	hide_text(length);
	r->tag[0] ^= 1;
	HIDE(r->tag, KEYS_TAG);
	bad |= ask(KEYS_DECRYPT, -EBADMSG);
	return bad | ask(KEYS_FORGET, 0);
}

static int signer(u32 op, u32 length)
{
	int bad = new_key(op, KEYS_SIGNER, 40);

	hide_text(length);
	bad |= ask(KEYS_SIGN, 0);
	bad |= ask(KEYS_VERIFY, 0);
	hide_text(length + 1);
	bad |= ask(KEYS_VERIFY, -EKEYREJECTED);
	return bad | ask(KEYS_FORGET, 0);
}

/* What valgrind must report: a table, and a branch. */
static int broken(void)
{
	static const u8 table[256] = { 1, 2, 3 };
	volatile u8 found;

	new_key(KEYS_PUT, KEYS_CIPHER, 32);
	found = table[keys_table[0].cipher.high & 255];
	return keys_table[0].cipher.low & 1 ? found : 3;
}

int main(int argc, char **argv)
{
	static const u32 lengths[] = { 0, 1, 15, 16, 48, 49, 64, 119, 1000 };
	u32 i;
	int bad = 0;

	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		bad |= cipher(i % 2 ? KEYS_PUT : KEYS_GENERATE, lengths[i]);
		bad |= signer(i % 2 ? KEYS_GENERATE : KEYS_PUT, lengths[i]);
	}
	if (argc > 1 && !strcmp(argv[1], "broken"))
		bad |= broken();
	return bad;
}
