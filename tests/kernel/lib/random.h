/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pseudorandom numbers, for the tests and for functions that a guest executes. */
#ifndef DUNE_TESTS_RANDOM_H
#define DUNE_TESTS_RANDOM_H

#include <stdint.h>

/* The number after @x in a sequence without 0 (xorshift64). @x must not be 0. */
static inline uint64_t next_random(uint64_t x)
{
	x ^= x << 13;
	x ^= x >> 7;
	return x ^ x << 17;
}

#endif
