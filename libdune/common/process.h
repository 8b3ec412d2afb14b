/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The state of the process, which its threads in Dune mode share: what dune_enter() or, in a
 * runtime, alone/start.c has set up, the pages, the locks, the actions of signals, and the list of
 * threads.
 */
#ifndef LIBDUNE_PROCESS_H
#define LIBDUNE_PROCESS_H

#include <linux/dune.h>
#include "address.h"
#include "dune.h"
#include "lock.h"
#include "sigaction.h"

/* A part of the arena, whose pages are given out from its start (arena/page.c). */
struct dune_chunk {
	u64 base, size, used;
};

/* The step by which an arena grows, and the unit of its limit. */
#define ARENA_STEP	(1ULL << 20)

/* dune_page_init() sets all members before other threads can use the arena. */
struct dune_arena {
	/* LOCK_GROWING: these two, and each chunk's base and size. All are read without it, too. */
	u32 complete;			/* there will be no other chunk */
	u64 placing;			/* where the first chunk is growing now, or 0 */
	struct dune_chunk chunk[2];
	/* LOCK_ARENA: these two, and each chunk's used. dune_stats() reads bytes without it. */
	struct dune_piece *pieces;	/* pages that were given back */
	u64 bytes;			/* of pages that are given out */
	/* Does not change. */
	u64 limit;			/* to which the first chunk may grow, or 0 */
};

/* The pages of a runtime in private memory (private/pages.c): LOCK_ARENA. */
struct dune_own_pages {
	struct dune_piece *pieces;	/* that were given back */
	u64 next, spare;		/* guest-physical address and number of new ones */
	u64 bytes;			/* of pages that are given out */
};

/*
 * The gigabytes of the granules below this number are in dune_process (memory/granule.c). Most
 * programs need no more.
 */
#define FEW_GRANULES	16

/*
 * The process's state; a child of fork has its own copy, as of all memory. It is
 * one page, since each page costs as much as ten system calls.
 */
struct dune_process {
	u32 entered;			/* never read; its store maps this page (dune_enter()) */
	/*
	 * Set by an atomic instruction while a thread is in dune_enter(), outside the guest:
	 * the lock of all that is set up there. A child of fork keeps its copy: its only
	 * thread is in the guest and never waits for this.
	 */
	u32 entering;
	u32 imported;			/* the actions from before the start are recorded */
	/*
	 * Written before the first thread is in the guest, while @entering is set, and never
	 * again: no lock to read these. A runtime has one thread, which writes them in ring 0,
	 * and @smap last (dune_runtime_close()).
	 */
	u32 ready;			/* all that threads share is set up */
	u32 smap;			/* CR4.SMAP is set; without it STAC may be #UD */
	u32 have_1g;			/* the processor has pages of 1 GB */
	u32 vcpu_flags;			/* of DUNE_CREATE_VCPU */
	u32 granules;			/* 0, or info.granules (memory/granule.c) */
	struct dune_info info;
	u64 super_base, super_size;
	u64 flags;			/* DUNE_ENTER_* */
	/* The handler of signals that the library installs in the kernel, with its flags. */
	u64 handler, restorer, handler_flags;
	u64 private_gpa;		/* where private memory begins, or NO_GPA */
	dune_pte *root;			/* the first page table; its entries: LOCK_TABLES */
	u64 idt[2 * VEC_GATES];
	/* No lock: any thread in dune_enter() writes it, by one store. */
	const char *reason;		/* why the last dune_enter() failed */
	/* Changed by atomic instructions. */
	u64 tables;			/* pages in use as page tables */
	u64 signals, forks;
	struct dune_lock locks[LOCKS];	/* LOCK_* of lock.h */
	union {
		struct dune_arena arena;	/* LOCK_ARENA and LOCK_GROWING */
		struct dune_own_pages own;
	};
	struct dune_sighand sighand;	/* sighand.lock */
	/* LOCK_GRANULES; read without it by __ATOMIC_ACQUIRE */
	u32 granules_used;
	/* By the granule's number; written before granules_used counts it. */
	u32 few_gigabytes[FEW_GRANULES];
	/* LOCK_THREADS */
	struct dune_thread *threads;
	u64 old_counters[DUNE_COUNT_MAX]; /* of vCPUs that were closed */
} __aligned(PAGE);

_Static_assert(sizeof(struct dune_process) == PAGE, "more than a page");
CHECK_OFFSET(struct dune_process, smap, P_SMAP);

extern struct dune_process dune_process;

/* The base is read after the size, since set_chunk() of arena/page.c writes it first. */
static inline bool in_chunk(const struct dune_chunk *c, u64 at)
{
	u64 size = READ_ONCE(c->size);

	return at - READ_ONCE(c->base) < size;
}

/* Returns whether @p is in the arena, in a page that is given out or not. */
static inline bool dune_in_arena(const void *p)
{
	const struct dune_arena *arena = &dune_process.arena;

	return in_chunk(&arena->chunk[0], (u64)p) || in_chunk(&arena->chunk[1], (u64)p);
}

#endif /* LIBDUNE_PROCESS_H */
