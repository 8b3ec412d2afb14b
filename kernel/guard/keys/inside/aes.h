/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * AES-256 (FIPS 197), encryption alone, four blocks at a time, without tables and branches.
 *
 * The state is bit-sliced: word i has bit i of each of the 64 bytes. In each word, a row of the
 * state has 16 bits, a column of it four, and a block one of these four. The order and the way
 * there are those of BearSSL's aes_ct64 (Thomas Pornin). The S-box is the circuit of Boyar and
 * Peralta ("A small depth-16 circuit for the AES S-box", 2012).
 */
#ifndef GUARD_KEYS_INSIDE_AES_H
#define GUARD_KEYS_INSIDE_AES_H

#include "guard/keys/inside/memory.h"

#define AES_ROUNDS	14
#define AES_BLOCK	16
#define AES_BATCH	(4 * AES_BLOCK)

struct aes_key {
	u64 round[AES_ROUNDS + 1][8];
};

static inline u64 rotate64(u64 x, u32 right)
{
	return x >> right | x << (64 - right);
}

static inline void swap_bits(u64 *a, u64 *b, u64 mask, u32 shift)
{
	u64 difference = (*a >> shift ^ *b) & mask;

	*b ^= difference;
	*a ^= difference << shift;
}

/* From words with bytes to words with bits, and back. */
static inline void transpose(u64 q[8])
{
	u32 i;

#pragma GCC unroll 8
	for (i = 0; i < 8; i += 2)
		swap_bits(&q[i], &q[i + 1], 0x5555555555555555, 1);
#pragma GCC unroll 8
	for (i = 0; i < 8; i += (i & 1) ? 3 : 1)
		swap_bits(&q[i], &q[i + 2], 0x3333333333333333, 2);
#pragma GCC unroll 8
	for (i = 0; i < 4; i++)
		swap_bits(&q[i], &q[i + 4], 0x0f0f0f0f0f0f0f0f, 4);
}

static inline u64 spread(u64 x)
{
	x = (x | x << 16) & 0x0000ffff0000ffff;
	return (x | x << 8) & 0x00ff00ff00ff00ff;
}

static inline u64 gather(u64 x)
{
	x = (x | x >> 8) & 0x0000ffff0000ffff;
	return (u32)(x | x >> 16);
}

/* A block, of four words, is in two words of the state before it is transposed. */
static inline void block_in(u64 *low, u64 *high, const u32 w[4])
{
	*low = spread(w[0]) | spread(w[2]) << 8;
	*high = spread(w[1]) | spread(w[3]) << 8;
}

static inline void block_out(u32 w[4], u64 low, u64 high)
{
	w[0] = gather(low & 0x00ff00ff00ff00ff);
	w[1] = gather(high & 0x00ff00ff00ff00ff);
	w[2] = gather(low >> 8 & 0x00ff00ff00ff00ff);
	w[3] = gather(high >> 8 & 0x00ff00ff00ff00ff);
}

static inline void sub_bytes(u64 q[8])
{
	u64 x0 = q[7], x1 = q[6], x2 = q[5], x3 = q[4], x4 = q[3], x5 = q[2], x6 = q[1], x7 = q[0];

	/* The linear layer at the top. */
	u64 y14 = x3 ^ x5, y13 = x0 ^ x6, y9 = x0 ^ x3, y8 = x0 ^ x5, t0 = x1 ^ x2, y1 = t0 ^ x7;
	u64 y4 = y1 ^ x3, y12 = y13 ^ y14, y2 = y1 ^ x0, y5 = y1 ^ x6, y3 = y5 ^ y8;
	u64 t1 = x4 ^ y12, y15 = t1 ^ x5, y20 = t1 ^ x1, y6 = y15 ^ x7, y10 = y15 ^ t0;
	u64 y11 = y20 ^ y9, y7 = x7 ^ y11, y17 = y10 ^ y11, y19 = y10 ^ y8, y16 = t0 ^ y11;
	u64 y21 = y13 ^ y16, y18 = x0 ^ y16;

	/* The inversion. */
	u64 t2 = y12 & y15, t4 = (y3 & y6) ^ t2, t6 = (y4 & x7) ^ t2, t7 = y13 & y16;
	u64 t9 = (y5 & y1) ^ t7, t11 = (y2 & y7) ^ t7, t12 = y9 & y11;
	u64 t14 = (y14 & y17) ^ t12, t16 = (y8 & y10) ^ t12, t21 = t4 ^ t14 ^ y20;
	u64 t22 = t6 ^ t16 ^ y19, t23 = t9 ^ t14 ^ y21, t24 = t11 ^ t16 ^ y18, t25 = t21 ^ t22;
	u64 t26 = t21 & t23, t27 = t24 ^ t26, t29 = (t25 & t27) ^ t22;
	u64 t33 = ((t22 ^ t26) & (t23 ^ t24)) ^ t24, t36 = t24 & (t27 ^ t33);
	u64 t37 = t36 ^ t23 ^ t33, t40 = t25 ^ (t29 & (t27 ^ t36));
	u64 t41 = t40 ^ t37, t42 = t29 ^ t33, t43 = t29 ^ t40, t44 = t33 ^ t37, t45 = t42 ^ t41;
	u64 z0 = t44 & y15, z1 = t37 & y6, z2 = t33 & x7, z3 = t43 & y16, z4 = t40 & y1;
	u64 z5 = t29 & y7, z6 = t42 & y11, z7 = t45 & y17, z8 = t41 & y10, z9 = t44 & y12;
	u64 z10 = t37 & y3, z11 = t33 & y4, z12 = t43 & y13, z13 = t40 & y5, z14 = t29 & y2;
	u64 z15 = t42 & y9, z16 = t45 & y14, z17 = t41 & y8;

	/* The linear layer at the bottom. */
	u64 t46 = z15 ^ z16, t48 = z5 ^ z13, t53 = z0 ^ z3, t54 = z6 ^ z7, t57 = z2 ^ z12 ^ t53;
	u64 t58 = z4 ^ t46, t59 = z3 ^ t54, t62 = z7 ^ z8 ^ t58, t63 = z9 ^ z10 ^ t58;
	u64 t64 = z4 ^ t59, t65 = z14 ^ t57 ^ t62, t66 = z1 ^ t63, s3 = t53 ^ t66;

	q[7] = t59 ^ t63;
	q[6] = t64 ^ ~s3;
	q[5] = z16 ^ z17 ^ ~(t64 ^ t65);
	q[4] = s3;
	q[3] = z2 ^ z5 ^ t66;
	q[2] = z10 ^ z11 ^ t65;
	q[1] = z12 ^ t48 ^ ~t62;
	q[0] = t48 ^ ~(t46 ^ t57);
}

/* Row r moves by r columns of four bits: rows 2 and 3 by two, then rows 1 and 3 by one. */
static inline void shift_rows(u64 q[8])
{
	u32 i;

#pragma GCC unroll 8
	for (i = 0; i < 8; i++) {
		u64 x = q[i], difference = (x ^ x >> 8) & 0x00ff00ff00000000;

		x ^= difference ^ difference << 8;
		q[i] = (x & 0x0000ffff0000ffff) | (x >> 4 & 0x0fff00000fff0000) |
		       (x << 12 & 0xf0000000f0000000);
	}
}

/*
 * Each byte becomes 2 a + 3 b + c + d, where b, c and d are those below it in its column: double a
 * and b, and add b, c and d. Doubling moves each bit up; bit 7 goes to the bits of 0x1b.
 */
static inline void mix_columns(u64 q[8])
{
	u64 below[8], top, carry;
	u32 i;

#pragma GCC unroll 8
	for (i = 0; i < 8; i++)
		below[i] = rotate64(q[i], 16);
	top = q[7] ^ below[7];
	carry = 0;
#pragma GCC unroll 8
	for (i = 0; i < 8; i++) {
		u64 sum = q[i] ^ below[i];

		q[i] = carry ^ below[i] ^ rotate64(sum, 32);
		if (0x1b >> i & 1)
			q[i] ^= top;
		carry = sum;
	}
}

static inline void add_key(u64 q[8], const u64 key[8])
{
	u32 i;

#pragma GCC unroll 8
	for (i = 0; i < 8; i++)
		q[i] ^= key[i];
}

/* Encrypts four blocks, as words with bits. */
static inline void aes_encrypt(const struct aes_key *key, u64 q[8])
{
	u32 round;

	add_key(q, key->round[0]);
	for (round = 1; ; round++) {
		sub_bytes(q);
		shift_rows(q);
		if (round == AES_ROUNDS)
			break;
		mix_columns(q);
		add_key(q, key->round[round]);
	}
	add_key(q, key->round[AES_ROUNDS]);
}

static inline u32 sub_word(u32 word)
{
	u64 q[8] = { word };

	transpose(q);
	sub_bytes(q);
	transpose(q);
	return q[0];
}

static inline void aes_set_key(struct aes_key *key, const u8 secret[32])
{
	u32 w[4 * (AES_ROUNDS + 1)], i, round, constant = 1;

	for (i = 0; i < 8; i++)
		w[i] = load32(secret + 4 * i);
	for (; i < 4 * (AES_ROUNDS + 1); i++) {
		u32 last = w[i - 1];

		if (i % 4 == 0) {
			last = sub_word(i % 8 ? last : last >> 8 | last << 24);
			if (i % 8 == 0) {
				last ^= constant;
				constant <<= 1;
			}
		}
		w[i] = w[i - 8] ^ last;
	}
	for (round = 0; round <= AES_ROUNDS; round++) {
		u64 *q = key->round[round];

		block_in(&q[0], &q[4], &w[4 * round]);
		for (i = 1; i < 4; i++) {
			q[i] = q[0];
			q[i + 4] = q[4];
		}
		transpose(q);
	}
	clear(w, sizeof(w));
}

#endif /* GUARD_KEYS_INSIDE_AES_H */
