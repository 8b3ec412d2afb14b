// SPDX-License-Identifier: GPL-2.0-only
/* SHA-256, as in FIPS 180-4, whose names the functions and variables have. */
#include "guard/hv/sha256.h"

static const u32 constants[64] = {
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

static u32 rotr(u32 x, unsigned int n)
{
	return x >> n | x << (32 - n);
}

static void add_block(struct sha256 *sha)
{
	const u8 *block = sha->block;
	u32 *state = sha->state;
	u32 w[64], v[8], t1, t2;
	unsigned int i;

	for (i = 0; i < 16; i++, block += 4)
		w[i] = (u32)block[0] << 24 | block[1] << 16 | block[2] << 8 | block[3];
	for (; i < 64; i++) {
		u32 x = w[i - 15], y = w[i - 2];

		w[i] = (rotr(y, 17) ^ rotr(y, 19) ^ y >> 10) + w[i - 7] +
		       (rotr(x, 7) ^ rotr(x, 18) ^ x >> 3) + w[i - 16];
	}
	for (i = 0; i < 8; i++)
		v[i] = state[i];
	for (i = 0; i < 64; i++) {
		t1 = v[7] + (rotr(v[4], 6) ^ rotr(v[4], 11) ^ rotr(v[4], 25)) +
		     ((v[4] & v[5]) ^ (~v[4] & v[6])) + constants[i] + w[i];
		t2 = (rotr(v[0], 2) ^ rotr(v[0], 13) ^ rotr(v[0], 22)) +
		     ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
		v[7] = v[6];
		v[6] = v[5];
		v[5] = v[4];
		v[4] = v[3] + t1;
		v[3] = v[2];
		v[2] = v[1];
		v[1] = v[0];
		v[0] = t1 + t2;
	}
	for (i = 0; i < 8; i++)
		state[i] += v[i];
}

void sha256_begin(struct sha256 *sha)
{
	static const u32 start[8] = {
		0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
		0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
	};
	unsigned int i;

	for (i = 0; i < 8; i++)
		sha->state[i] = start[i];
	sha->length = 0;
}

static void add_byte(struct sha256 *sha, u8 byte)
{
	sha->block[sha->length++ % SHA256_BLOCK] = byte;
	if (!(sha->length % SHA256_BLOCK))
		add_block(sha);
}

void sha256_add(struct sha256 *sha, const u8 *bytes, u64 length)
{
	u64 i;

	for (i = 0; i < length; i++)
		add_byte(sha, bytes[i]);
}

void sha256_end(struct sha256 *sha, u8 hash[SHA256_SIZE])
{
	u64 bits = sha->length * 8;
	unsigned int i;

	add_byte(sha, 0x80);
	while (sha->length % SHA256_BLOCK != SHA256_BLOCK - 8)
		add_byte(sha, 0);
	for (i = 0; i < 8; i++)
		add_byte(sha, bits >> (56 - 8 * i));
	for (i = 0; i < SHA256_SIZE; i++)
		hash[i] = sha->state[i / 4] >> (24 - 8 * (i % 4));
}
