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

#endif /* DUNE_RUN_PROTECT_H */
