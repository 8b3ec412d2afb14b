/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The interface of guard-keys.ko: /dev/guard-keys.
 *
 * The module keeps keys, and encrypts and signs with them. A key never comes out of it. A cipher is
 * AES-256-GCM, a signer HMAC-SHA-256.
 *
 * A key belongs to the open file that made it, and is forgotten when the last descriptor of that
 * file is closed; or it is kept, and belongs to the user of that file (the effective user when it
 * was opened) until it is forgotten. Only files of its owner can use it: all others get ENOENT,
 * whatever handle they pass. A file that was opened for reading can use keys, and one that was
 * opened for writing can put, generate and forget them.
 *
 * All layouts are fixed and little-endian. The ioctls are for 64-bit callers (ENOTTY for others).
 * Each gives EFAULT for memory that cannot be read or written, EBADF for a file that was not opened
 * for this, EINVAL for a value that is not described here, also in reserved and unused fields, and
 * ENOMEM.
 */
#ifndef _UAPI_LINUX_GUARD_KEYS_H
#define _UAPI_LINUX_GUARD_KEYS_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* guard_keys_status.version: a change that older programs would not understand counts it up. */
#define GUARD_KEYS_VERSION	1

#define GUARD_KEYS_MAX		64	/* keys at once */
#define GUARD_KEYS_PER_USER	16	/* of these, keys of one user other than root */
#define GUARD_KEYS_NAME		32	/* bytes of a name, with the 0 at its end */
#define GUARD_KEYS_SECRET	64	/* the longest secret */
#define GUARD_KEYS_TEXT		65536	/* the longest message */
#define GUARD_KEYS_EXTRA	256	/* the longest additional data */

/**
 * struct guard_keys_status - GUARD_KEYS_GET_STATUS
 * @version:	GUARD_KEYS_VERSION
 * @guarded:	1 if a guard keeps the keys from the kernel; 0: the kernel can read them
 */
struct guard_keys_status {
	__u32 version;
	__u32 guarded;
};

/* kind */
#define GUARD_KEYS_CIPHER	1	/* AES-256-GCM; its secret has 32 bytes */
#define GUARD_KEYS_SIGNER	2	/* HMAC-SHA-256; its secret has 16 to 64 bytes */

/* usage: what a key may be used for */
#define GUARD_KEYS_CAN_ENCRYPT	1
#define GUARD_KEYS_CAN_DECRYPT	2
#define GUARD_KEYS_CAN_SIGN	4
#define GUARD_KEYS_CAN_VERIFY	8

/**
 * struct guard_keys_key - GUARD_KEYS_PUT, _GENERATE and _LIST
 * @handle:	the key, on output
 * @kind:	GUARD_KEYS_CIPHER or GUARD_KEYS_SIGNER
 * @usage:	GUARD_KEYS_CAN_*, one or both of the kind's
 * @kept:	1: the key stays after the file is closed, and needs a name that no kept key of
 *		this user has; 0: it does not
 * @index:	_LIST: on input, where to begin, from 0; on output the place of this key. Else 0
 * @uses:	_LIST, on output: messages that the key has encrypted or signed. Else 0
 * @name:	letters, digits, "-", "_" and ".", then zeros; may be empty if the key is not kept
 */
struct guard_keys_key {
	__u64 handle;
	__u32 kind;
	__u32 usage;
	__u32 kept;
	__u32 index;
	__u64 uses;
	char name[GUARD_KEYS_NAME];
};

/**
 * struct guard_keys_put - GUARD_KEYS_PUT
 * @key:	as of GUARD_KEYS_GENERATE
 * @length:	bytes of @secret
 * @reserved:	0
 * @secret:	the secret, then zeros. The module clears its own copies
 */
struct guard_keys_put {
	struct guard_keys_key key;
	__u32 length;
	__u32 reserved;
	__u8 secret[GUARD_KEYS_SECRET];
};

/**
 * struct guard_keys_crypt - GUARD_KEYS_ENCRYPT and _DECRYPT
 * @handle:	the key
 * @from:	address of the text to encrypt or decrypt
 * @to:		address for the result, of the same length; may be @from
 * @extra:	address of additional data, which the tag covers and which stays as it is
 * @length:	bytes of text, 0 to GUARD_KEYS_TEXT
 * @extra_length: bytes of additional data, 0 to GUARD_KEYS_EXTRA
 * @nonce:	_ENCRYPT: on output, the message's nonce, which the key has never used before.
 *		_DECRYPT: on input
 * @reserved:	0
 * @tag:	_ENCRYPT: on output, the message's tag. _DECRYPT: on input
 */
struct guard_keys_crypt {
	__u64 handle;
	__u64 from;
	__u64 to;
	__u64 extra;
	__u32 length;
	__u32 extra_length;
	__u8 nonce[12];
	__u32 reserved;
	__u8 tag[16];
};

/**
 * struct guard_keys_sign - GUARD_KEYS_SIGN and _VERIFY
 * @handle:	the key
 * @text:	address of the message
 * @length:	bytes of it, 0 to GUARD_KEYS_TEXT
 * @reserved:	0
 * @signature:	_SIGN: on output. _VERIFY: on input
 */
struct guard_keys_sign {
	__u64 handle;
	__u64 text;
	__u32 length;
	__u32 reserved;
	__u8 signature[32];
};

#define GUARD_KEYS_GET_STATUS	_IOR('k', 0, struct guard_keys_status)
/* EEXIST: a kept key has this name; EDQUOT: this user has too many keys; ENOSPC: all have. */
#define GUARD_KEYS_PUT		_IOWR('k', 1, struct guard_keys_put)
/* As GUARD_KEYS_PUT, with a secret that nobody knows. */
#define GUARD_KEYS_GENERATE	_IOWR('k', 2, struct guard_keys_key)
/*
 * ENOENT: no such key for this file; EPERM: it may not be used for this; EMSGSIZE: more text or
 * additional data than there may be; EKEYEXPIRED: the key has no nonces left (after 2^32 - 1).
 */
#define GUARD_KEYS_ENCRYPT	_IOWR('k', 3, struct guard_keys_crypt)
/* As GUARD_KEYS_ENCRYPT; EBADMSG: the tag is wrong, and there is no result. */
#define GUARD_KEYS_DECRYPT	_IOWR('k', 4, struct guard_keys_crypt)
/* ENOENT, EPERM, EMSGSIZE: as GUARD_KEYS_ENCRYPT. */
#define GUARD_KEYS_SIGN		_IOWR('k', 5, struct guard_keys_sign)
/* As GUARD_KEYS_SIGN; EKEYREJECTED: the signature is wrong. */
#define GUARD_KEYS_VERIFY	_IOWR('k', 6, struct guard_keys_sign)
/* The first key from index on that this file can use; ENOENT: there is none. */
#define GUARD_KEYS_LIST		_IOWR('k', 7, struct guard_keys_key)
/* The argument is a pointer to the handle. Clears all that the module knows of it. ENOENT. */
#define GUARD_KEYS_FORGET	_IOW('k', 8, __u64)
/*
 * Lets a guard that is launched and not sealed keep the keys from the kernel. For CAP_SYS_ADMIN
 * (EPERM). ENODEV: there is no launched guard; EPERM: it is sealed; EALREADY; ENOTEMPTY: there is a
 * key, which would be lost, and which the kernel may have read.
 */
#define GUARD_KEYS_GUARD	_IO('k', 9)

#endif /* _UAPI_LINUX_GUARD_KEYS_H */
