// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Memory for the arrays and structures that the kernel reads after the check:
 * what was checked is copied here first, and the kernel is given the copy, so
 * that nobody who shares the program's memory can change it in between.
 *
 * One pool, given back when the next system call starts. A call that is in
 * the kernel is the only one that uses it: a process in the sandbox has one
 * thread, a child that shares its memory runs while it waits inside vfork
 * (process.c), which has nothing here, and handlers of signals run in ring 3
 * after the call that they interrupted has ended; should it be made again it
 * starts anew with its checks. Threads will need a pool each.
 */
#include "run.h"

#define SCRATCH_BYTES	(160 * 1024)

static u8 pool[SCRATCH_BYTES] __attribute__((aligned(16)));
static u64 used;

void scratch_reset(void)
{
	used = 0;
}

/* NULL when the pool cannot hold it. */
void *scratch_get(u64 bytes)
{
	void *p = pool + used;

	bytes = (bytes + 15) & ~15UL;
	if (bytes > SCRATCH_BYTES - used)
		return NULL;
	used += bytes;
	return p;
}
