/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Values that passed a check, made harmless for the case that the processor only guessed
 * the outcome of the check.
 */
#ifndef DUNE_RUN_NOSPEC_H
#define DUNE_RUN_NOSPEC_H

#include "super_range.h"

/*
 * @index where it is below @size, else 0, without a branch that the processor
 * could guess wrong: Linux's array_index_nospec().
 */
static inline u64 index_nospec(u64 index, u64 size)
{
	u64 mask;

	__asm__ ("cmp %1, %2; sbb %0, %0" : "=r" (mask) : "r" (size), "r" (index) : "cc");
	return index & mask;
}

/*
 * @p, or 0 where it is in the supervisor range, without a branch: for an address that
 * passed the checks, while the processor may only guess that it did.
 */
static inline u64 outside_nospec(u64 p)
{
	u64 mask;

	__asm__ ("cmp %1, %2; sbb %0, %0"
		 : "=r" (mask) : "r" (SUPER_SIZE), "r" (p - super_base) : "cc");
	return p & ~mask;
}

#endif /* DUNE_RUN_NOSPEC_H */
