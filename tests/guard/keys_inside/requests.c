// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What the inside of guard-keys.ko refuses, and for whom: each error, limits, owners; then random
 * requests, of which the sanitizers judge the effects. Fails when a wrong request is accepted, or
 * a key is used or seen by a caller to whom it does not belong.
 */
#include "caller.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

static const u8 secret[KEYS_SECRET] = "a secret of the test's own, and quite long";

static void refused_keys(void)
{
	static const struct {
		u32 kind, usage, length;
	} wrong[] = {
		{ 0, 1, 32 }, { 3, 1, 32 }, { KEYS_CIPHER, 0, 32 }, { KEYS_CIPHER, 4, 32 },
		{ KEYS_CIPHER, 7, 32 }, { KEYS_SIGNER, 1, 32 }, { KEYS_SIGNER, 16, 32 },
		{ KEYS_CIPHER, 3, 31 }, { KEYS_CIPHER, 3, 33 }, { KEYS_CIPHER, 3, 0 },
		{ KEYS_SIGNER, 12, 15 }, { KEYS_SIGNER, 12, 65 }, { KEYS_SIGNER, 12, ~0u },
	};
	u32 i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		begin_request();
		memcpy(request.secret, secret, KEYS_SECRET);
		request.kind = wrong[i].kind;
		request.usage = wrong[i].usage;
		request.secret_length = wrong[i].length;
		is(ask(KEYS_PUT), -EINVAL, "a key of kind %u, usage %u, with %u bytes",
		   wrong[i].kind, wrong[i].usage, wrong[i].length);
	}
	begin_request();
	request.kind = KEYS_CIPHER;
	request.usage = 3;
	request.file = 0;
	is(ask(KEYS_GENERATE), -EINVAL, "a key of no file");
	begin_request();
	request.kind = KEYS_CIPHER;
	request.usage = 3;
	request.kept = 1;
	is(ask(KEYS_GENERATE), -EINVAL, "a kept key without a name");
	request.kept = 2;
	is(ask(KEYS_GENERATE), -EINVAL, "kept is neither 0 nor 1");
	begin_request();
	is(ask(0), -EINVAL, "request 0");
	is(ask(KEYS_STATUS + 1), -EINVAL, "a request that does not exist");
}

static void refused_uses(void)
{
	u64 cipher = put(KEYS_CIPHER, secret, 32), signer = put(KEYS_SIGNER, secret, 64), half;

	ok(cipher && signer && cipher != signer, "two keys");
	begin_request();
	is(use(KEYS_SIGN, cipher, 1, 0), -EPERM, "a cipher does not sign");
	is(use(KEYS_VERIFY, cipher, 1, 0), -EPERM, "a cipher does not verify");
	is(use(KEYS_ENCRYPT, signer, 1, 0), -EPERM, "a signer does not encrypt");
	is(use(KEYS_DECRYPT, signer, 1, 0), -EPERM, "a signer does not decrypt");
	is(use(KEYS_ENCRYPT, cipher, KEYS_TEXT + 1, 0), -EMSGSIZE, "a text that is too long");
	is(use(KEYS_ENCRYPT, cipher, 0, KEYS_EXTRA + 1), -EMSGSIZE, "too much additional data");
	is(use(KEYS_DECRYPT, cipher, ~0u, ~0u), -EMSGSIZE, "both");
	is(use(KEYS_SIGN, signer, KEYS_TEXT + 1, 0), -EMSGSIZE, "a message that is too long");
	is(use(KEYS_ENCRYPT, cipher + 2, 1, 0), -ENOENT, "a handle that does not exist");
	is(use(KEYS_ENCRYPT, 0, 1, 0), -ENOENT, "handle 0");
	is(forget(0), -ENOENT, "handle 0 cannot be forgotten");
	is(forget(cipher), 0, "the cipher is forgotten");
	is(forget(cipher), -ENOENT, "but not twice");
	begin_request();
	is(use(KEYS_ENCRYPT, cipher, 1, 0), -ENOENT, "nor used then");
	is(forget(signer), 0, "the signer is forgotten");

	begin_request();
	request.kind = KEYS_CIPHER;
	request.usage = KEYS_CAN_DECRYPT;
	is(ask(KEYS_GENERATE), 0, "a key that only decrypts");
	half = request.handle;
	is(use(KEYS_ENCRYPT, half, 1, 0), -EPERM, "does not encrypt");
	is(use(KEYS_DECRYPT, half, 1, 0), -EBADMSG, "and refuses a wrong tag");
	is(forget(half), 0, "it is forgotten");
}

/* A key of this name that is kept for this user. */
static long keep(u64 file, u64 user, const char *name)
{
	begin_request();
	request.file = file;
	request.user = user;
	request.kind = KEYS_CIPHER;
	request.usage = 3;
	request.kept = 1;
	strcpy((char *)request.name, name);
	return ask(KEYS_GENERATE);
}

static long encrypt_as(u64 file, u64 user, u64 handle)
{
	begin_request();
	request.file = file;
	request.user = user;
	request.handle = handle;
	return ask(KEYS_ENCRYPT);
}

/* The number of keys that this caller sees. */
static u32 count_keys(u64 file, u64 user)
{
	u32 count = 0, next = 0;

	for (;;) {
		begin_request();
		request.file = file;
		request.user = user;
		request.index = next;
		if (ask(KEYS_LIST))
			return count;
		next = request.index + 1;
		count++;
	}
}

static void owners(void)
{
	u64 own = generate(KEYS_CIPHER), kept;

	is(encrypt_as(FILE_A, USER, own), 0, "a file uses its key");
	is(encrypt_as(FILE_A, USER + 1, own), 0, "whatever its user is");
	is(encrypt_as(FILE_B, USER, own), -ENOENT, "another file does not");
	is(encrypt_as(0, USER, own), -ENOENT, "nor does no file");
	is(keep(FILE_A, USER, "name"), 0, "a key is kept");
	kept = request.handle;
	is(encrypt_as(FILE_B, USER, kept), 0, "another file of its user uses it");
	is(encrypt_as(FILE_A, USER + 1, kept), -ENOENT, "another user does not");
	is(keep(FILE_B, USER, "name"), -EEXIST, "its name is taken");
	is(keep(FILE_B, USER, "names"), 0, "a longer name is not");
	is(keep(FILE_B, USER + 1, "name"), 0, "another user has the same name");
	is(count_keys(FILE_A, USER), 3, "keys that the file sees");
	is(count_keys(FILE_B, USER), 2, "keys that another one of the same user sees");
	is(count_keys(FILE_B, USER + 1), 1, "keys that another user sees");
	is(count_keys(0, USER + 2), 0, "keys that a third one sees");
	begin_request();
	is(ask(KEYS_FORGET_FILE), 0, "the file is closed");
	is(encrypt_as(FILE_A, USER, own), -ENOENT, "its key is forgotten");
	is(encrypt_as(FILE_B, USER, kept), 0, "what is kept is not");
}

static void limits(void)
{
	u32 i, count = 0;

	while (keep(FILE_B, USER + 5, (char[]){ 'a' + count, 0 }) == 0)
		count++;
	is(count, KEYS_PER_USER, "keys of one user");
	is(keep(FILE_B, USER + 5, "more"), -EDQUOT, "one more is refused");
	for (i = 0; i < KEYS_MAX; i++) {
		begin_request();
		request.user = 0;
		request.kind = KEYS_SIGNER;
		request.usage = KEYS_CAN_SIGN;
		if (ask(KEYS_GENERATE))
			break;
	}
	is(i, KEYS_MAX - KEYS_PER_USER - 3, "root takes all that are left");
	is(ask(KEYS_GENERATE), -ENOSPC, "then there is no room");
	begin_request();
	ask(KEYS_FORGET_FILE);
	begin_request();
	request.user = USER + 5;
	is(use(KEYS_LIST, 0, 0, 0), 0, "other keys are there");
}

static void random_requests(u32 count)
{
	u32 i, j, *words = (u32 *)&request;

	srand(1);
	for (i = 0; i < count; i++) {
		for (j = 0; j < sizeof(request) / 4; j++)
			words[j] = rand() % 4 ? (u32)rand() % 70 : (u32)rand() * 5;
		request.op = rand() % (KEYS_FORGET_FILE + 2);
		request.usage &= 15;
		request.kind = rand() % 3;
		request.kept &= 1;
		request.user = rand() % 8;
		request.file = rand() % 8;
		if (rand() % 2)
			request.text_length = rand() % (KEYS_TEXT + 2);
		keys_enter();
	}
	ok(true, "%u random requests", count);
}

int main(void)
{
	refused_keys();
	refused_uses();
	owners();
	limits();
	random_requests(20000);
	return done();
}
