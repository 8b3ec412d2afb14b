/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Locks. Both halves of the library take them, and so does dune_enter(). In the guest
 * interrupts are off while a lock is held, so no handler of a signal runs then. The
 * handler of the host half, which may interrupt a holder, takes no lock.
 *
 * The order. A thread takes first the lock of its struct dune_sighand, then locks of the
 * process in the order of enum dune_lock_number; it may leave out any. dune_lock()
 * asserts this for threads that have a block.
 *
 * fork. The child has a copy of memory and of the locks, but not of the other threads. So
 * the parent takes all locks before it makes the child, and afterwards both processes
 * release theirs (host/process.c, and alone/process.c without a host half).
 *
 * vfork. A child that shares memory can be killed at any instruction, also while it
 * holds a lock. When the child is gone, its parent releases what the child held (in the same
 * files). For this a lock records the block of its holder. With a host half the child has a block
 * of its own. Without one it uses its parent's, but the parent waits, and holds no lock. The
 * holder's death between any two of its stores leaves data that the next holder can use:
 *  - Lists and page tables change by one store, or one compare-and-exchange, each. Pages
 *    that the child had taken from the arena are lost unless a list or a table already has
 *    them, and dune_stats() may count them wrongly. A change of a range may be half made.
 *  - A thread's records about its TLB are in its block. The child's own block ends with the child;
 *    into a block that both use, the parent puts its own records back.
 *  - The actions of signals are repaired by the parent (dune_undo_set_action()).
 *  - The next holder finishes the assignment of a granule, and a step by which the arena
 *    of a program grows in its place. Such a child never adds the arena's second chunk,
 *    since its parent has done so (dune_page_complete()).
 * If such a child was made without CLONE_VFORK, or if its parent was killed first, no
 * process learns of its death, and a lock that it held stays held.
 */
#ifndef LIBDUNE_LOCK_H
#define LIBDUNE_LOCK_H

#include "compiler.h"
#include "layout.h"

struct dune_lock {
	u32 holder;		/* 0, dune_lock_holder() of a block, or HOLDER_OUTSIDE */
};

/* All threads outside the guest that have no block. The numbers of blocks are smaller. */
#define HOLDER_OUTSIDE	(~0U)

/* The locks of the process, in dune_process.locks. process.h marks the members of each. */
enum dune_lock_number {
	LOCK_THREADS,		/* the list of threads, and the counters of closed vCPUs */
	/*
	 * The shape of all page tables (memory/pgtable.c). Leaf entries change, and
	 * entries of 0 are filled, without it.
	 */
	LOCK_TABLES,
	LOCK_GROWING,		/* the growth of the arena; it is held for system calls */
	LOCK_GRANULES,		/* the assignment of granules (memory/granule.c) */
	LOCK_ARENA,		/* the pages of the library's memory that are given out */
	LOCKS
};

/*
 * Takes @l, in the guest with interrupts off. Returns the flags for dune_unlock(). Outside
 * the guest these are 0, with which dune_unlock() leaves interrupts alone. If the thread
 * holds @l already, or a lock that comes after @l, an invalid instruction (UD2) ends
 * it, unless it has no block. GS may have any value, since dune_pf_early() calls this.
 */
u64 dune_lock(struct dune_lock *l);

/* Releases @l. @flags: what dune_lock() returned. */
void dune_unlock(struct dune_lock *l, u64 flags);

/*
 * Releases @l outside the guest and ends the calling thread, by exit(@status). From the release
 * on another thread may use the stack, so no signal may have a handler in this thread.
 */
void dune_unlock_and_exit(struct dune_lock *l, long status) __noreturn;

/*
 * Asserts that a thread holds @l: for functions whose caller takes the lock. It does not look which
 * thread, so that it costs two instructions.
 */
static inline void dune_assert_held(const struct dune_lock *l)
{
	if (unlikely(!READ_ONCE(l->holder)))
		__builtin_trap();
}

/* Returns the number by which locks know the thread in whose block @p is. */
static inline u32 dune_lock_holder(const void *p)
{
	return (u64)p / BLOCK_SIZE;
}

#endif /* LIBDUNE_LOCK_H */
