/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Galois/Counter Mode (NIST SP 800-38D) with AES-256, nonces of 96 bits and tags of 128, without
 * tables and branches on secrets.
 *
 * A product of polynomials over GF(2) is made of integer products whose factors have one bit in
 * four, so that carries end before the next bit that counts. That gives the lower half; the upper
 * half is the lower half of the product of the reversed factors. (So does BearSSL's ghash_ctmul64.)
 */
#ifndef GUARD_KEYS_INSIDE_GCM_H
#define GUARD_KEYS_INSIDE_GCM_H

#include "guard/keys/inside/aes.h"

struct gcm_key {
	struct aes_key aes;
	u64 high, low;			/* H, the key of GHASH */
	u64 high_reversed, low_reversed;
};

static inline u64 multiply(u64 x, u64 y)
{
	const u64 mask = 0x1111111111111111;
	u64 x0 = x & mask, x1 = x & mask << 1, x2 = x & mask << 2, x3 = x & mask << 3;
	u64 y0 = y & mask, y1 = y & mask << 1, y2 = y & mask << 2, y3 = y & mask << 3;

	return ((x0 * y0 ^ x1 * y3 ^ x2 * y2 ^ x3 * y1) & mask) |
	       ((x0 * y1 ^ x1 * y0 ^ x2 * y3 ^ x3 * y2) & mask << 1) |
	       ((x0 * y2 ^ x1 * y1 ^ x2 * y0 ^ x3 * y3) & mask << 2) |
	       ((x0 * y3 ^ x1 * y2 ^ x2 * y1 ^ x3 * y0) & mask << 3);
}

static inline u64 reverse(u64 x)
{
	x = (x & 0x5555555555555555) << 1 | (x >> 1 & 0x5555555555555555);
	x = (x & 0x3333333333333333) << 2 | (x >> 2 & 0x3333333333333333);
	x = (x & 0x0f0f0f0f0f0f0f0f) << 4 | (x >> 4 & 0x0f0f0f0f0f0f0f0f);
	return __builtin_bswap64(x);
}

struct ghash {
	u64 high, low;
};

/* Hashes one block: adds it, and multiplies by H. */
static inline void ghash_block(struct ghash *hash, const struct gcm_key *key, u64 high, u64 low)
{
	u64 y1 = hash->high ^ high, y0 = hash->low ^ low, h1 = key->high, h0 = key->low;
	u64 y1r = reverse(y1), y0r = reverse(y0), h1r = key->high_reversed, h0r = key->low_reversed;
	u64 a = multiply(y0, h0), b = multiply(y1, h1), c = multiply(y0 ^ y1, h0 ^ h1) ^ a ^ b;
	u64 ar = multiply(y0r, h0r), br = multiply(y1r, h1r);
	u64 cr = multiply(y0r ^ y1r, h0r ^ h1r) ^ ar ^ br;
	u64 v0 = a, v1 = reverse(ar) >> 1 ^ c, v2 = b ^ reverse(cr) >> 1, v3 = reverse(br) >> 1;

	/* GCM's order of bits is the reverse one: the product is one bit too far down. */
	v3 = v3 << 1 | v2 >> 63;
	v2 = v2 << 1 | v1 >> 63;
	v1 = v1 << 1 | v0 >> 63;
	v0 <<= 1;

	/* Modulo x^128 + x^7 + x^2 + x + 1. */
	v2 ^= v0 ^ v0 >> 1 ^ v0 >> 2 ^ v0 >> 7;
	v1 ^= v0 << 63 ^ v0 << 62 ^ v0 << 57;
	v3 ^= v1 ^ v1 >> 1 ^ v1 >> 2 ^ v1 >> 7;
	v2 ^= v1 << 63 ^ v1 << 62 ^ v1 << 57;
	hash->high = v3;
	hash->low = v2;
}

/* Hashes @length bytes, and zeros up to the end of the block. */
static inline void ghash_bytes(struct ghash *hash, const struct gcm_key *key, const u8 *bytes,
			       u32 length)
{
	u8 last[AES_BLOCK] = { 0 };

	for (; length >= AES_BLOCK; length -= AES_BLOCK, bytes += AES_BLOCK)
		ghash_block(hash, key, __builtin_bswap64(load64(bytes)),
			    __builtin_bswap64(load64(bytes + 8)));
	if (!length)
		return;
	copy(last, bytes, length);
	ghash_block(hash, key, __builtin_bswap64(load64(last)),
		    __builtin_bswap64(load64(last + 8)));
}

static inline void gcm_set_key(struct gcm_key *key, const u8 secret[32])
{
	u64 q[8] = { 0 };
	u32 w[4];

	aes_set_key(&key->aes, secret);
	aes_encrypt(&key->aes, q);
	transpose(q);
	block_out(w, q[0], q[4]);
	key->high = __builtin_bswap64(w[0] | (u64)w[1] << 32);
	key->low = __builtin_bswap64(w[2] | (u64)w[3] << 32);
	key->high_reversed = reverse(key->high);
	key->low_reversed = reverse(key->low);
}

/* The stream of AES in counter mode: the four blocks whose first one has this number. */
static inline void gcm_stream(const struct gcm_key *key, const u8 nonce[12], u32 number,
			      u8 stream[AES_BATCH])
{
	u32 w[4] = { load32(nonce), load32(nonce + 4), load32(nonce + 8) }, i, j;
	u64 q[8];

	for (i = 0; i < 4; i++) {
		w[3] = __builtin_bswap32(number + i);
		block_in(&q[i], &q[i + 4], w);
	}
	transpose(q);
	aes_encrypt(&key->aes, q);
	transpose(q);
	for (i = 0; i < 4; i++) {
		block_out(w, q[i], q[i + 4]);
		for (j = 0; j < 4; j++)
			store32(stream + AES_BLOCK * i + 4 * j, w[j]);
	}
}

/*
 * Encrypts or decrypts @text in place, and computes the tag of the encrypted text and of @extra.
 * Block 1 of the stream is for the tag, the others are for the text.
 */
static inline void gcm(const struct gcm_key *key, int encrypts, const u8 nonce[12], const u8 *extra,
		       u32 extra_length, u8 *text, u32 length, u8 tag[16])
{
	u8 stream[AES_BATCH], mask[AES_BLOCK] = { 0 };
	u32 number = 1, at = 0, from, part, i;
	struct ghash hash = { 0, 0 };

	ghash_bytes(&hash, key, extra, extra_length);
	do {
		gcm_stream(key, nonce, number, stream);
		from = number == 1 ? AES_BLOCK : 0;
		if (from)
			copy(mask, stream, AES_BLOCK);
		part = AES_BATCH - from;
		if (part > length - at)
			part = length - at;
		for (i = 0; i < 2; i++) {
			if (i == (u32)encrypts)
				ghash_bytes(&hash, key, text + at, part);
			else
				for (u32 j = 0; j < part; j++)
					text[at + j] ^= stream[from + j];
		}
		at += part;
		number += 4;
	} while (at < length);
	ghash_block(&hash, key, (u64)extra_length * 8, (u64)length * 8);
	store64(tag, __builtin_bswap64(hash.high) ^ load64(mask));
	store64(tag + 8, __builtin_bswap64(hash.low) ^ load64(mask + 8));
	clear(stream, sizeof(stream));
	clear(mask, sizeof(mask));
}

#endif /* GUARD_KEYS_INSIDE_GCM_H */
