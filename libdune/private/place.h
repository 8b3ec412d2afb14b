/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Where the library's own memory is, for a runtime in private memory (DUNE_ADD_PRIVATE in
 * <linux/dune.h>): in the upper half of the linear addresses, for ring 0 alone. (arena/place.h is
 * the same for a program in ring 0.) dune_addresses.h has the addresses.
 */
#ifndef LIBDUNE_PLACE_H
#define LIBDUNE_PLACE_H

#include "dune_addresses.h"
#include "memory.h"

/* For dune_print_no_pages(): what has no page left, and what helps. */
#define PAGES_OF	"private memory"
#define PAGES_ADVICE	"raise the limit of the memory cgroup"

/* Returns the guest-physical address of page table @t. */
static inline u64 table_gpa(const void *t)
{
	return (u64)t - DUNE_PRIVATE_BASE + dune_process.private_gpa;
}

/* Returns the address at which ring 0 finds @gpa of private memory. */
static inline void *table_at(u64 gpa)
{
	return (void *)(gpa - dune_process.private_gpa + DUNE_PRIVATE_BASE);
}

/* The supervisor range is ring 3's, too, like all memory of the process. */
static inline bool is_ring0s_gigabyte(u64 va)
{
	(void)va;
	return false;
}

/* Maps the page at @gpa to @to, an address of the image's gigabyte, for ring 0. */
void dune_private_map_page(u64 to, u64 gpa);
/* Maps @size bytes of the process's memory at @from to @to in this way; both in whole pages. */
void dune_private_map(u64 to, u64 from, u64 size);
/* Adds the page of .bss around @va, which a page fault has named. Returns whether it is there. */
bool dune_page_upper(u64 va);
/*
 * Adds the page of .bss around @p, for code that must not fault when it uses it. Returns whether
 * the page exists now.
 */
bool dune_page_need(const void *p) __attribute__((warn_unused_result));

#endif /* LIBDUNE_PLACE_H */
