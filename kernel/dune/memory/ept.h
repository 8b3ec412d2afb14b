/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Page tables in EPT's format (SDM vol. 3, 29.3.2), as the files of a mirror use them. level.h has
 * what they have in common with the process's own. A table counts its entries that are not 0, and
 * knows where they begin, in page_private(): all entries are set by ept_set_entry(), or are counted
 * by ept_count_entries().
 */
#ifndef DUNE_MEMORY_EPT_H
#define DUNE_MEMORY_EPT_H

#include <linux/bits.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <asm/vmx.h>

#include "dune/memory/level.h"

#define EPT_RIGHTS	(VMX_EPT_READABLE_MASK | VMX_EPT_WRITABLE_MASK | \
			 VMX_EPT_EXECUTABLE_MASK)
/*
 * Set in advance, since the processor would set them, at a cost, at the access for which
 * the entry is made. Nothing here depends on the dirty bit.
 */
#define EPT_USED	(VMX_EPT_ACCESS_BIT | VMX_EPT_DIRTY_BIT)
#define EPT_FRAME	GENMASK_ULL(51, PAGE_SHIFT)
#define EPT_ROOT_LEVEL	4

static inline u64 *ept_table_below(u64 entry)
{
	return phys_to_virt(entry & EPT_FRAME);
}

/* In page_private(): the number of entries; from this bit on, a slot before which none is. */
#define EPT_LOWEST_SHIFT	16

/* Returns the number of entries of a table that are not 0. */
static inline unsigned long ept_entries(u64 *table)
{
	return page_private(virt_to_page(table)) & (BIT(EPT_LOWEST_SHIFT) - 1);
}

/* Returns a slot before which the table has no entry. Most have few entries, side by side. */
static inline u64 *ept_lowest(u64 *table)
{
	return table + (page_private(virt_to_page(table)) >> EPT_LOWEST_SHIFT);
}

/* The table has @entries now, none of them before ept_lowest(). */
static inline void ept_set_entries(u64 *table, unsigned long entries)
{
	set_page_private(virt_to_page(table), entries | (ept_lowest(table) - table) <<
						  EPT_LOWEST_SHIFT);
}

/*
 * Counts @added entries of the table of @slot, which were 0 and are not before it. The lock of the
 * table's mirror is held, or nobody else has the table yet.
 */
static inline void ept_count_entries(u64 *slot, unsigned int added)
{
	u64 *table = PTR_ALIGN_DOWN(slot, PAGE_SIZE);
	unsigned long entries = ept_entries(table);
	u64 *lowest = entries && ept_lowest(table) < slot ? ept_lowest(table) : slot;

	set_page_private(virt_to_page(table), (entries + added) | (lowest - table) <<
						  EPT_LOWEST_SHIFT);
}

/* The same holds for the lock. */
static inline void ept_set_entry(u64 *slot, u64 entry)
{
	u64 *table = PTR_ALIGN_DOWN(slot, PAGE_SIZE);

	if (entry && !*slot)
		ept_count_entries(slot, 1);
	else if (!entry && *slot)
		ept_set_entries(table, ept_entries(table) - 1);
	WRITE_ONCE(*slot, entry);
}

#endif /* DUNE_MEMORY_EPT_H */
