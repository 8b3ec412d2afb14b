/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The contract between the inside of guard-keys.ko, which has the keys, and everything else.
 *
 * The inside is entered at one place, keys_enter(), and shares one block of memory with the rest of
 * the kernel: the exchange. The caller writes a request there, enters, and reads the results there.
 * No pointer is passed in either direction. Whoever can write the exchange can change it at any
 * time; the inside therefore copies what it needs before it looks at it.
 *
 * The same source is compiled for a program on the host, so it includes nothing of Linux but the
 * numbers of errors.
 */
#ifndef GUARD_KEYS_INSIDE_EXCHANGE_H
#define GUARD_KEYS_INSIDE_EXCHANGE_H

/*
 * Stacks at the start of the private section: a guard gives one to each activation; without a
 * guard, the first one is used.
 */
#define KEYS_STACKS	4
#define KEYS_STACK	16384

#ifndef __ASSEMBLER__

#include <asm-generic/errno.h>

/* The same types as Linux's, so that a file may include both definitions. */
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define KEYS_MAX	64	/* keys at once */
#define KEYS_PER_USER	16	/* of these, keys of one user other than root */
#define KEYS_NAME	32	/* bytes of a name, with the 0 at its end */
#define KEYS_SECRET	64	/* the longest secret */
#define KEYS_TEXT	65536	/* the longest message */
#define KEYS_EXTRA	256	/* the longest additional data */
#define KEYS_NONCE	12
#define KEYS_TAG	16
#define KEYS_SIGNATURE	32
#define KEYS_SEED	32

enum keys_op {
	KEYS_STIR = 1,		/* adds seed to the random numbers */
	KEYS_PUT,		/* a key from the caller: secret, secret_length, and as GENERATE */
	KEYS_GENERATE,		/* a new key: kind, usage, kept, name, seed; gives handle */
	KEYS_ENCRYPT,		/* text in place, extra; gives nonce and tag */
	KEYS_DECRYPT,		/* text in place, extra, nonce, tag */
	KEYS_SIGN,		/* text; gives signature */
	KEYS_VERIFY,		/* text, signature */
	KEYS_LIST,		/* the first key from index on that the caller may use */
	KEYS_FORGET,		/* one key; gives kept */
	KEYS_FORGET_FILE,	/* all keys of the caller's file that are not kept */
	KEYS_STATUS,		/* gives guarded, and in index how many keys there are */
};

enum keys_kind {
	KEYS_CIPHER = 1,	/* AES-256-GCM */
	KEYS_SIGNER,		/* HMAC-SHA-256 */
};

#define KEYS_CAN_ENCRYPT	1
#define KEYS_CAN_DECRYPT	2
#define KEYS_CAN_SIGN		4
#define KEYS_CAN_VERIFY		8

/**
 * struct keys_request - what to do, for whom, with which key
 * @op:			enum keys_op
 * @kind:		enum keys_kind
 * @usage:		KEYS_CAN_*: what the key may be used for
 * @kept:		1: the key belongs to @user, by @name; 0: to @file alone
 * @handle:		the key
 * @file:		the caller's open file; never the same number again
 * @user:		the caller's user
 * @text_length:	bytes of keys_exchange.text
 * @extra_length:	bytes of keys_exchange.extra
 * @secret_length:	bytes of @secret
 * @index:		of KEYS_LIST, from 0
 * @guarded:		result of KEYS_STATUS: 1 if a guard has entered the inside, else 0
 * @uses:		result of KEYS_LIST: messages that the key has encrypted or signed
 * @nonce:		of a message
 * @tag:		of a message
 * @signature:		of a message
 * @name:		of a key, ended by a 0
 * @secret:		of KEYS_PUT
 * @seed:		random bytes of the caller's, which are added to the inside's own
 */
struct keys_request {
	u32 op;
	u32 kind;
	u32 usage;
	u32 kept;
	u64 handle;
	u64 file;
	u64 user;
	u32 text_length;
	u32 extra_length;
	u32 secret_length;
	u32 index;
	u64 uses;
	u64 guarded;
	u8 nonce[KEYS_NONCE];
	u8 tag[KEYS_TAG];
	u8 signature[KEYS_SIGNATURE];
	u8 name[KEYS_NAME];
	u8 secret[KEYS_SECRET];
	u8 seed[KEYS_SEED];
};

struct keys_exchange {
	union {
		struct keys_request request;
		u8 page[4096 - KEYS_EXTRA];
	};
	u8 extra[KEYS_EXTRA];
	u8 text[KEYS_TEXT];
};

extern struct keys_exchange keys_exchange;

/*
 * Does what the exchange's request asks for. Returns 0 or a negative errno: -EBUSY if another CPU
 * is inside, -EIO from a guard if the inside had an exception. For any context; it needs little of
 * the caller's stack.
 */
long keys_enter(void);

/* For a guard: the other ends of the sections. */
extern const u8 keys_text_end[], keys_rodata[], keys_rodata_end[];
extern u8 keys_stacks[], keys_private_end[];

#endif /* !__ASSEMBLER__ */

#endif /* GUARD_KEYS_INSIDE_EXCHANGE_H */
