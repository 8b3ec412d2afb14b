/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The supervisor range: what the runtime has in the process's own memory. It is one range of pages,
 * all of them mapped:
 *
 *	the stub, one page of the module's, by which the thread runs its guest, and the window
 *	the scratch
 *	the kernel's stack for signals
 *
 * Nothing there decides what the runtime does or what runs natively. Nobody but the runtime writes
 * the window, and nobody at all the stub. What is in the scratch and on the stack for signals may
 * be forged (<dune_copies.h>, docs/security.md). The checks keep the program's system calls away
 * from the range nevertheless, by the two comparisons below. Ring 3 itself can read all of the
 * range, and write the scratch and the stack for signals. The kernel's own accesses in ascending
 * order from below stop at the stub when they write.
 */
#ifndef DUNE_RUN_SUPER_RANGE_H
#define DUNE_RUN_SUPER_RANGE_H

#include "types.h"

#define STUB_SIZE	0x5000UL	/* with DUNE_WINDOW_SIZE */
#define SCRATCH_SIZE	0x30000UL	/* DUNE_SCRATCH_SIZE */
#define FRAMES_SIZE	0xb000UL
#define SUPER_SIZE	0x40000UL

/*
 * Where it is: start/start.c chooses the place in the first process of a tree, and the module after
 * an execve. main.c sets this.
 */
extern u64 super_base;

/* Does the object that starts at @p begin in the supervisor range? */
static inline bool in_super_range(u64 p)
{
	return p - super_base < SUPER_SIZE;
}

/* Does any byte of [p, p + len) lie in the supervisor range? Right for any values. */
static inline bool meets_super_range(u64 p, u64 len)
{
	if (in_super_range(p))
		return true;
	return p < super_base && len > super_base - p;
}

#endif /* DUNE_RUN_SUPER_RANGE_H */
