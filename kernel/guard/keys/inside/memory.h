/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bytes and words in memory. The inside has no memcpy() of its own that the compiler could call,
 * and calls nobody else's: all of this becomes a part of the one function in work.c.
 */
#ifndef GUARD_KEYS_INSIDE_MEMORY_H
#define GUARD_KEYS_INSIDE_MEMORY_H

#include "guard/keys/inside/exchange.h"

/* Words at any address. */
typedef u32 __attribute__((aligned(1), may_alias)) any32;
typedef u64 __attribute__((aligned(1), may_alias)) any64;

static inline void copy(void *to, const void *from, u32 length)
{
	const u8 *f = from;
	u8 *t = to;

	for (; length >= 8; length -= 8, t += 8, f += 8)
		*(any64 *)t = *(const any64 *)f;
	while (length--)
		*t++ = *f++;
}

/* From memory that others may write at the same time: each byte is read once. */
static inline void copy_shared(void *to, const volatile void *from, u32 length)
{
	const volatile u8 *f = from;
	u8 *t = to;

	for (; length >= 8; length -= 8, t += 8, f += 8)
		*(any64 *)t = *(const volatile any64 *)f;
	while (length--)
		*t++ = *f++;
}

/* The compiler may not leave this out. */
static inline void clear(void *at, u32 length)
{
	volatile u8 *p = at;

	for (; length >= 8; length -= 8, p += 8)
		*(volatile any64 *)p = 0;
	while (length--)
		*p++ = 0;
}

static inline u32 load32(const u8 *at)
{
	return *(const any32 *)at;
}

static inline u64 load64(const u8 *at)
{
	return *(const any64 *)at;
}

static inline void store32(u8 *at, u32 value)
{
	*(any32 *)at = value;
}

static inline void store64(u8 *at, u64 value)
{
	*(any64 *)at = value;
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
