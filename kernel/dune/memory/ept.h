/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Page tables in EPT's format (SDM vol. 3, 29.3.2), as the files of a mirror use them. level.h has
 * what they have in common with the process's own. A table counts its entries that are not 0, in
 * page_private(): all entries are set by ept_set_entry(), or are counted by ept_count_entries().
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

/* Returns the number of entries of a table that are not 0. */
static inline unsigned long ept_entries(u64 *table)
{
	return page_private(virt_to_page(table));
}

/* The lock of the table's mirror is held, or nobody else has the table yet. */
static inline void ept_set_entry(u64 *slot, u64 entry)
{
	struct page *table = virt_to_page(slot);

	set_page_private(table, page_private(table) + !!entry - !!*slot);
	WRITE_ONCE(*slot, entry);
}

/* Counts @added entries of the table of @slot, which were 0. The same holds for the lock. */
static inline void ept_count_entries(u64 *slot, unsigned int added)
{
	struct page *table = virt_to_page(slot);

	set_page_private(table, page_private(table) + added);
}

#endif /* DUNE_MEMORY_EPT_H */
