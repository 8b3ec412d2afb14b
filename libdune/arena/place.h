/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Where the library's own memory is, for a program in ring 0: in the process, whose addresses ring
 * 0 uses, too. So page tables have addresses of the process like everything else. (private/place.h
 * is the same for a runtime in private memory.)
 */
#ifndef LIBDUNE_PLACE_H
#define LIBDUNE_PLACE_H

#include "memory.h"

/* Returns the guest-physical address of page table @t, or NO_GPA if no granule is left for it. */
static inline u64 table_gpa(const void *t)
{
	return to_gpa((u64)t);
}

/* Returns the address of the page table at @gpa, which table_gpa() returned. */
static inline void *table_at(u64 gpa)
{
	return (void *)to_va(gpa);
}

/* For dune_print_no_pages(): what has no page left, and what helps. */
#define PAGES_OF	"the arena"
#define PAGES_ADVICE	"split fewer large pages, or give dune_enter() a larger arena"

/* Only ring 0 reaches a gigabyte of the supervisor range. */
static inline bool is_ring0s_gigabyte(u64 va)
{
	return va - dune_process.super_base < dune_process.super_size;
}

/* Nothing of a program is above the addresses of a process. */
static inline bool dune_page_upper(u64 va)
{
	(void)va;
	return false;
}

/* All of the library's memory can be used at any time (dune_pt_touch_core()). */
static inline bool dune_page_need(const void *p)
{
	(void)p;
	return true;
}

#endif /* LIBDUNE_PLACE_H */
