/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The addresses that belong to the runtime, and the two comparisons by which
 * every check tells whether the program names one of them.
 */
#ifndef DUNE_RUN_PROTECT_H
#define DUNE_RUN_PROTECT_H

#define GRANULE_BASE	0x6d7500000000UL
#define GRANULE_SIZE	0x40000000UL
#define GUARD_SIZE	0x100000UL

/* Does the object that starts at @p begin in the granule? */
static inline bool in_granule(u64 p)
{
	return p - GRANULE_BASE < GRANULE_SIZE;
}

/* Does any byte of [p, p + len) lie in the granule? Right for any values. */
static inline bool meets_granule(u64 p, u64 len)
{
	if (in_granule(p))
		return true;
	return p < GRANULE_BASE && len > GRANULE_BASE - p;
}

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
 * @p, or 0 where it is in the granule, without a branch: for an address that
 * passed the checks, while the processor may only guess that it did.
 */
static inline u64 outside_nospec(u64 p)
{
	u64 mask;

	__asm__ ("cmp %1, %2; sbb %0, %0"
		 : "=r" (mask) : "r" (GRANULE_SIZE), "r" (p - GRANULE_BASE) : "cc");
	return p & ~mask;
}

#endif /* DUNE_RUN_PROTECT_H */
