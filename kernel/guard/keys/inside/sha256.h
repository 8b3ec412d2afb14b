/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SHA-256 (FIPS 180-4) and HMAC (RFC 2104). Neither has a branch or an address that depends on the
 * text or the key.
 */
#ifndef GUARD_KEYS_INSIDE_SHA256_H
#define GUARD_KEYS_INSIDE_SHA256_H

#include "guard/keys/inside/memory.h"

#define SHA256_BLOCK	64
#define SHA256_DIGEST	32

/* The states after the first block, which is made of the key. */
struct hmac_key {
	u32 inner[8], outer[8];
};

static const u32 sha256_start[8] = {
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab,
	0x5be0cd19,
};

static const u32 sha256_constants[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static inline u32 rotate32(u32 x, u32 right)
{
	return x >> right | x << (32 - right);
}

static inline u32 mix(u32 x, u32 first, u32 second, u32 third)
{
	return rotate32(x, first) ^ rotate32(x, second) ^ rotate32(x, third);
}

static inline u32 scramble(u32 x, u32 first, u32 second, u32 out)
{
	return rotate32(x, first) ^ rotate32(x, second) ^ x >> out;
}

static inline void sha256_block(u32 state[8], const u8 block[SHA256_BLOCK])
{
	u32 w[16], s[8], round, i, j;

	for (i = 0; i < 8; i++)
		s[i] = state[i];
	for (round = 0; round < 64; round += 16) {
#pragma GCC unroll 16
		for (i = 0; i < 16; i++) {
			u32 next;

			if (round)
				w[i] += scramble(w[(i + 1) % 16], 7, 18, 3) + w[(i + 9) % 16] +
					scramble(w[(i + 14) % 16], 17, 19, 10);
			else
				w[i] = __builtin_bswap32(load32(block + 4 * i));
			next = s[7] + mix(s[4], 6, 11, 25) + ((s[4] & s[5]) ^ (~s[4] & s[6])) +
			       sha256_constants[round + i] + w[i];
			s[3] += next;
			next += mix(s[0], 2, 13, 22) +
				((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
#pragma GCC unroll 8
			for (j = 7; j > 0; j--)
				s[j] = s[j - 1];
			s[0] = next;
		}
	}
	for (i = 0; i < 8; i++)
		state[i] += s[i];
}

static inline void sha256_words(u8 *bytes, const u32 state[8])
{
	u32 i;

	for (i = 0; i < 8; i++)
		store32(bytes + 4 * i, __builtin_bswap32(state[i]));
}

/* @length: at most SHA256_BLOCK */
static inline void hmac_set_key(struct hmac_key *key, const u8 *secret, u32 length)
{
	u8 block[SHA256_BLOCK];
	u32 i, which;

	for (which = 0; which < 2; which++) {
		u32 *state = which ? key->outer : key->inner;

		for (i = 0; i < SHA256_BLOCK; i++)
			block[i] = (i < length ? secret[i] : 0) ^ (which ? 0x5c : 0x36);
		for (i = 0; i < 8; i++)
			state[i] = sha256_start[i];
		sha256_block(state, block);
	}
	clear(block, sizeof(block));
}

/* The hash of the inner key and the text, and the hash of the outer key and that. */
static inline void hmac(const struct hmac_key *key, const u8 *text, u32 length, u8 digest[32])
{
	u32 state[8], left = length, i;
	u8 last[SHA256_BLOCK];
	u64 bits = (u64)(SHA256_BLOCK + length) * 8;
	int is_outer = 0, is_ended = 0;

	for (i = 0; i < 8; i++)
		state[i] = key->inner[i];
	for (;;) {
		const u8 *block = text;

		if (left < SHA256_BLOCK) {
			clear(last, sizeof(last));
			copy(last, text, left);
			if (!is_ended)
				last[left] = 0x80;
			if (left < SHA256_BLOCK - 8)
				store64(last + SHA256_BLOCK - 8, __builtin_bswap64(bits));
			block = last;
		}
		sha256_block(state, block);
		if (left >= SHA256_BLOCK) {
			left -= SHA256_BLOCK;
			text += SHA256_BLOCK;
			continue;
		}
		if (left >= SHA256_BLOCK - 8) {
			/* No room was left for the number of bits. */
			left = 0;
			is_ended = 1;
			continue;
		}
		sha256_words(digest, state);
		if (is_outer)
			break;
		for (i = 0; i < 8; i++)
			state[i] = key->outer[i];
		text = digest;
		left = SHA256_DIGEST;
		bits = (SHA256_BLOCK + SHA256_DIGEST) * 8;
		is_ended = 0;
		is_outer = 1;
	}
	clear(last, sizeof(last));
	clear(state, sizeof(state));
}

#endif /* GUARD_KEYS_INSIDE_SHA256_H */
