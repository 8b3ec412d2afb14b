/* SPDX-License-Identifier: GPL-2.0-only */
/* SHA-256 (FIPS 180-4), for content.c, which calls nothing outside of this folder. */
#ifndef GUARD_HV_SHA256_H
#define GUARD_HV_SHA256_H

#include "guard/hv/border/types.h"

#define SHA256_SIZE	32
#define SHA256_BLOCK	64

struct sha256 {
	u32 state[8];
	u64 length;
	u8 block[SHA256_BLOCK];
};

void sha256_begin(struct sha256 *sha);
void sha256_add(struct sha256 *sha, const u8 *bytes, u64 length);
/* @sha is not to be used any more. */
void sha256_end(struct sha256 *sha, u8 hash[SHA256_SIZE]);

#endif /* GUARD_HV_SHA256_H */
