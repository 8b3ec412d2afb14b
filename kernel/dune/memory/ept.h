/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Page tables in EPT's format (SDM vol. 3, 29.3.2), and what they have in common with
 * the process's own: entries of 8 bytes, 512 in a table, levels of 9 bits, the bit
 * of a large page.
 */
#ifndef DUNE_MEMORY_EPT_H
#define DUNE_MEMORY_EPT_H

#include <linux/bits.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <asm/vmx.h>

#define EPT_RIGHTS	(VMX_EPT_READABLE_MASK | VMX_EPT_WRITABLE_MASK | \
			 VMX_EPT_EXECUTABLE_MASK)
/*
 * Set in advance, since the processor would set them, at a cost, at the access for which
 * the entry is made. Nothing here depends on the dirty bit.
 */
#define EPT_USED	(VMX_EPT_ACCESS_BIT | VMX_EPT_DIRTY_BIT)
#define EPT_LARGE	BIT_ULL(7)
#define EPT_FRAME	GENMASK_ULL(51, PAGE_SHIFT)
#define EPT_ROOT_LEVEL	4
#define EPT_ENTRIES	512

static inline int ept_level_shift(int level)
{
	return PAGE_SHIFT + 9 * (level - 1);
}

static inline u64 ept_level_span(int level)
{
	return BIT_ULL(ept_level_shift(level));
}

/* The first address after those of the entry for @address. */
static inline u64 ept_level_end(u64 address, int level)
{
	return (address | (ept_level_span(level) - 1)) + 1;
}

/* Returns the slot for @address, in a table of EPT's format or of the process's own. */
static inline u64 *ept_slot(u64 *table, u64 address, int level)
{
	return &table[address >> ept_level_shift(level) & (EPT_ENTRIES - 1)];
}

static inline bool ept_is_leaf(u64 entry, int level)
{
	return level == 1 || entry & EPT_LARGE;
}

static inline u64 *ept_table_below(u64 entry)
{
	return phys_to_virt(entry & EPT_FRAME);
}

/* A table counts its entries that are not 0, in page_private(). */
static inline void ept_count_entry(u64 *slot, int change)
{
	struct page *page = virt_to_page(slot);

	set_page_private(page, page_private(page) + change);
}

static inline unsigned long ept_entries(u64 *table)
{
	return page_private(virt_to_page(table));
}

static inline void ept_set_entry(u64 *slot, u64 entry)
{
	ept_count_entry(slot, !!entry - !!*slot);
	WRITE_ONCE(*slot, entry);
}

#endif /* DUNE_MEMORY_EPT_H */
