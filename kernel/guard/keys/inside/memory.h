/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bytes and words in memory. The inside has no memcpy() of its own that the compiler could call,
 * and calls nobody else's: all of this becomes a part of the one function in work.c.
 */
#ifndef GUARD_KEYS_INSIDE_MEMORY_H
#define GUARD_KEYS_INSIDE_MEMORY_H

#include "guard/keys/inside/exchange.h"

/* Words at any address. The compiler makes single instructions of these copies. */
static inline u32 load32(const u8 *at)
{
	u32 value;

	__builtin_memcpy(&value, at, sizeof(value));
	return value;
}

static inline u64 load64(const u8 *at)
{
	u64 value;

	__builtin_memcpy(&value, at, sizeof(value));
	return value;
}

static inline void store32(u8 *at, u32 value)
{
	__builtin_memcpy(at, &value, sizeof(value));
}

static inline void store64(u8 *at, u64 value)
{
	__builtin_memcpy(at, &value, sizeof(value));
}

static inline void copy(void *to, const void *from, u32 length)
{
	const u8 *f = from;
	u8 *t = to;

	for (; length >= 8; length -= 8, t += 8, f += 8)
		store64(t, load64(f));
	while (length--)
		*t++ = *f++;
}

/* From memory that others may write at the same time: what follows uses the copy alone. */
static inline void copy_shared(void *to, const void *from, u32 length)
{
	copy(to, from, length);
	asm volatile("" : : "r" (to) : "memory");
}

/* The compiler may not leave this out. */
static inline void clear(void *at, u32 length)
{
	u8 *p = at;

	for (; length >= 8; length -= 8, p += 8)
		store64(p, 0);
	while (length--)
		*p++ = 0;
	asm volatile("" : : "r" (at) : "memory");
}

/* 1 if both are the same, else 0, without a branch. */
static inline u64 is_same(const u8 *a, const u8 *b, u32 length)
{
	u64 difference = 0;

	while (length--)
		difference |= *a++ ^ *b++;
	return (difference - 1) >> 63;
}

#endif /* GUARD_KEYS_INSIDE_MEMORY_H */
