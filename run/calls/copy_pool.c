// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Memory for the arrays and structures that the kernel reads after the check.
 * They are copied here first, the copy is checked, and the kernel gets the copy,
 * so that a process that shares the program's memory cannot change it in between.
 *
 * There is one pool, emptied when the next system call starts. Only one call at a
 * time uses it: a process in the sandbox has one thread; a child that shares its
 * memory runs while the parent waits inside vfork (process.c), which does not use
 * the pool; and handlers of signals run in ring 3 after the call that they
 * interrupted has ended, and if that call is made again its checks start anew.
 * With threads each will need a pool of its own.
 */
#include "copy_pool.h"

static u8 pool[COPY_POOL_BYTES] __attribute__((aligned(16)));
static u64 used;

void copy_pool_reset(void)
{
	used = 0;
}

void *copy_pool_get(u64 bytes)
{
	void *p = pool + used;

	bytes = (bytes + 15) & ~15UL;
	if (bytes > COPY_POOL_BYTES - used)
		return NULL;
	used += bytes;
	return p;
}
