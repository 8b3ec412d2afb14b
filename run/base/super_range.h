/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The supervisor range (struct dune_config): one aligned gigabyte of the address
 * space, in which dune-run and everything that it allocates live. Its entry in the
 * guest's page table is for the supervisor only: the program in ring 3 cannot touch it.
 * The checks keep the kernel from touching it on the program's behalf, by the two
 * comparisons below. Two facts make them short:
 *
 * - The range begins with the guard region: GUARD_REGION_SIZE bytes that cannot be
 *   accessed (own/guard_region.c). Reads and writes of the kernel in ascending order from
 *   an address below the range stop there with EFAULT, and so do those of a structure no
 *   longer than the guard region: for these only the start of the object is checked.
 * - A mapping call whose result would lie in the range is undone (calls/mapping.c),
 *   so the program never owns memory there.
 *
 * (A granule, struct dune_granule, is something else: a gigabyte of guest-physical
 * space.)
 */
#ifndef DUNE_RUN_SUPER_RANGE_H
#define DUNE_RUN_SUPER_RANGE_H

#include "types.h"

#define SUPER_BASE	0x6d7500000000UL
#define SUPER_SIZE	0x40000000UL

/* The parts of the range. The image of dune-run follows the guard region. */
#define GUARD_REGION_SIZE	0x100000UL
extern char _end[];				/* the linker's: the end of the image */
#define ARENA_BASE	(SUPER_BASE + 0x10000000UL)
#define ARENA_SIZE	0x00100000UL	/* at first */
#define ARENA_LIMIT	0x10000000UL
#define VECTOR_BASE	(SUPER_BASE + 0x20000000UL)	/* load/exec.c: argv, envp */
#define STATS_BASE	(SUPER_BASE + 0x30000000UL)

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

#endif /* DUNE_RUN_SUPER_RANGE_H */
