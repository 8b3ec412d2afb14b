/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * This header declares the functions that the files of this folder have for each other
 * and for the layers above: pages, page tables, guest-physical addresses, the TLB. Both
 * halves call them, unless a comment names one half. The C file describes those that have no
 * comment here.
 */
#ifndef LIBDUNE_MEMORY_H
#define LIBDUNE_MEMORY_H

#include "process.h"
#include "text.h"

/*
 * The page allocator has two implementations, of which a program is linked with one: arena/page.c
 * for a program in ring 0, private/pages.c for a runtime in private memory. Returns @count pages in
 * one piece, or NULL if there are none. They are zero, or *@dirty is set and they were used before.
 */
void *dune_page_take(unsigned int count, bool *dirty);
/* Returns the bytes that are given out now. */
u64 dune_page_bytes(void);

/* arena/page.c alone */
#define FIRST_CHUNK	(5 * BLOCK_SIZE)

void dune_page_init(const struct dune_config *cfg);
/* The first chunk of an arena of the library's own: dune_arena.chunk[0] is in it. */
extern u8 dune_first_chunk[FIRST_CHUNK];
/* in the host half, as dune_unlock_and_exit() */
void dune_page_free_and_exit(void *page, unsigned int count, long status) __noreturn;
void dune_page_complete(void);

/* table.c */
void dune_pt_init(bool have_1g);
dune_pte *dune_pt_new(void);
int dune_pt_touch(dune_pte *root, const void *p, u64 size);
int dune_pt_touch_reserved(u64 first, u64 last, dune_pte *pages, u32 count);
u64 dune_pt_bytes(void);
/* in the guest half, on the way into a page fault (guest/entry.S) */
bool dune_pf_early(u64 va);

/* tlb.c, in the guest half */
void dune_tlb_is_clean(void);

/* message.c */
void dune_print_no_granule(u64 va);
void dune_print_no_pages(u64 va);

/* arena/core.c */
int dune_pt_touch_core(dune_pte *root);

/* granule.c: guest-physical addresses if they are not the process's own */
#define NO_GPA		(~0ULL)
#define GIGABYTES	(1U << (USER_BITS - GB_SHIFT))
/* The most that a u16 can count: 64 TB, half of all addresses. */
#define GRANULES_MAX	(1U << 16)

/* Both tables of granule.c, for arena/core.c. */
extern u32 dune_gigabyte_of[GRANULES_MAX];
extern u16 dune_granule_of[GIGABYTES];

void dune_granule_init(u32 granules);
u64 dune_granule_gpa(u64 va);
u64 dune_granule_va(u64 gpa);
long dune_granule_describe(u64 gpa, struct dune_granule *g);
/* in the host half */
long dune_granule_tell_all(int vcpu);
long dune_granule_tell(int vcpu, u64 gpa);

/* Returns the guest-physical address of @va, or NO_GPA if no granule is left for it. */
ALWAYS_INLINE u64 to_gpa(u64 va)
{
	return likely(!dune_process.granules) ? va : dune_granule_gpa(va);
}

/* Returns the process's address of @gpa, which to_gpa() returned. */
ALWAYS_INLINE u64 to_va(u64 gpa)
{
	return likely(!dune_process.granules) ? gpa : dune_granule_va(gpa);
}

#endif /* LIBDUNE_MEMORY_H */
