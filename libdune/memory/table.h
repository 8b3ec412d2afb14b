/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The tables that page tables consist of: for table.c, which makes them, and for those that use
 * them, pgtable.c, which has the calls on page tables, and tlb.c.
 */
#ifndef LIBDUNE_TABLE_H
#define LIBDUNE_TABLE_H

#include "place.h"

#define PT_ENTRIES		512
#define PT_TOP		3		/* level of the root; 0: pages of 4 KB */

/*
 * The word of a root that holds its generation, for PCIDs that keep their entries
 * (tlb.c). The upper half of a root maps no user address, and the processor ignores all
 * other bits of an entry whose P is clear (APM vol. 2, 5.3).
 */
#define GENERATION	511

/* Returns the present generation of @root, which pgtable.c changes. */
static inline u64 generation_of(const dune_pte *root)
{
	return READ_ONCE(root[GENERATION]);
}

/* Tables taken in advance, linked by their first word. */
struct spare {
	dune_pte *first;
};

static inline u64 level_size(int level)
{
	return PAGE << (9 * level);
}

static inline u64 level_index(u64 va, int level)
{
	return va >> (12 + 9 * level) & (PT_ENTRIES - 1);
}

static inline dune_pte *table_of(dune_pte v)
{
	return table_at(v & DUNE_PTE_ADDR);
}

/* Returns whether an entry above level 0 leads to a table. */
static inline bool is_table(dune_pte v)
{
	return (v & (DUNE_PTE_P | DUNE_PTE_PS)) == DUNE_PTE_P;
}

/* Returns an entry that leads to @t, which dune_table_new() made. */
static inline dune_pte link_to(const dune_pte *t)
{
	return table_gpa(t) | DUNE_PTE_P | DUNE_PTE_W | DUNE_PTE_U | DUNE_PTE_A;
}

/* Returns the size of the largest page that may map @va to @memory and has room in @len. */
static inline u64 largest_page(u64 va, u64 memory, u64 len)
{
	u64 size = level_size(2);

	while (((va | memory) & (size - 1)) || len < size)
		size >>= 9;
	return size;
}

/* Returns a new table, which is zero, or NULL if there is no memory or no granule is left. */
dune_pte *dune_table_new(void);
void dune_table_free(dune_pte *t);

/*
 * A call that changes a range first takes every table that it needs, with LOCK_TABLES
 * held, and after the change releases those that were not needed.
 */
int dune_table_prepare(dune_pte *root, u64 va, u64 len, u64 memory, u64 limit, struct spare *spare);
void dune_table_release(struct spare *spare);

/* Return the leaf entry of @va, whose identity entry is made if it is missing. */
dune_pte *dune_table_leaf(dune_pte *root, u64 va, int *level, struct spare *spare);
dune_pte *dune_table_leaf_below(dune_pte *root, u64 va, u64 size, int *level, struct spare *spare);

#endif /* LIBDUNE_TABLE_H */
