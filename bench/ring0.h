/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The measurements of a process in ring 0, without KVM and while KVM is loaded. */
#ifndef BENCH_RING0_H
#define BENCH_RING0_H

#include "bench.h"

#include <dune.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static inline char *map(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	madvise(p, bytes, MADV_NOHUGEPAGE);
	return p;
}

/* Two bytes long, so that a handler can step over it. */
static inline void store(char *p)
{
	__asm__ volatile("movb %%al, (%%rdi)" : : "D" (p), "a" (1) : "memory");
}

__attribute__((target("general-regs-only")))
static void trap_step_over(struct dune_tf *tf)
{
	tf->rip += 2;
}

static inline uint64_t getpid_in_ring0(void)
{
	return MEASURE(dune_hypercall(SYS_getpid, 0, 0, 0, 0, 0, 0));
}

/* The first touch of fresh pages. */
static inline uint64_t first_touch(void)
{
	char *fresh = map(ROUNDS * 4096);

	return MEASURE(fresh[i * 4096] = 1);
}

/* Make @page read-only: a handler steps over each store() there, until it is removed. */
static inline void forbid_stores(char *page)
{
	dune_pt_protect(dune_pt_root(), (uint64_t)page, 4096, DUNE_PT_RO);
	dune_trap_set(DUNE_VECTOR_PF, trap_step_over, 0);
}

/* A forbidden write to a present page among others. */
static inline uint64_t trap_in_ring0(char *page)
{
	uint64_t cost;

	forbid_stores(page);
	cost = MEASURE(store(page));
	dune_trap_set(DUNE_VECTOR_PF, NULL, 0);
	return cost;
}

/* In the middle of 64 present pages. */
static inline char *page_in_middle(void)
{
	char *page = map(64 * 4096) + 32 * 4096;
	int i;

	for (i = -32; i < 32; i++)
		page[i * 4096] = 1;
	return page;
}

#endif /* BENCH_RING0_H */
