/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The supervisor range (struct dune_config): the addresses that belong to the
 * runtime, one aligned gigabyte, and the two comparisons by which every check
 * decides whether the program names one of them. (A granule, struct dune_granule,
 * is something else: a gigabyte of guest-physical space.)
 */
#ifndef DUNE_RUN_PROTECT_H
#define DUNE_RUN_PROTECT_H

#define SUPER_BASE	0x6d7500000000UL
#define SUPER_SIZE	0x40000000UL
#define GUARD_REGION_SIZE	0x100000UL

/* Does the object that starts at @p begin in the supervisor range? */
static inline bool in_super_range(u64 p)
{
	return p - SUPER_BASE < SUPER_SIZE;
}

/* Does any byte of [p, p + len) lie in the supervisor range? Right for any values. */
static inline bool meets_super_range(u64 p, u64 len)
{
	if (in_super_range(p))
		return true;
	return p < SUPER_BASE && len > SUPER_BASE - p;
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
 * @p, or 0 where it is in the supervisor range, without a branch: for an address that
 * passed the checks, while the processor may only guess that it did.
 */
static inline u64 outside_nospec(u64 p)
{
	u64 mask;

	__asm__ ("cmp %1, %2; sbb %0, %0"
		 : "=r" (mask) : "r" (SUPER_SIZE), "r" (p - SUPER_BASE) : "cc");
	return p & ~mask;
}

#endif /* DUNE_RUN_PROTECT_H */
