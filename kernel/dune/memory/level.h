/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The form that all page tables of x86 share, the process's own and those in EPT's format (SDM
 * vol. 3, 4.5 and 29.3.2): entries of 8 bytes, 512 in a table, levels of 9 bits of the address,
 * which are numbered from 1, and the bit of a large page. Also the width of a process's addresses.
 */
#ifndef DUNE_MEMORY_LEVEL_H
#define DUNE_MEMORY_LEVEL_H

#include <linux/bits.h>
#include <linux/types.h>
#include <asm/page.h>

#define LEVEL_ENTRIES	512

/* Guests use process addresses of 47 bits, whatever the kernel has. */
#define PROCESS_BITS	47

/* In an entry above level 1: it leads to a page, and not to a table. */
#define LEVEL_LARGE	BIT_ULL(7)

static inline int level_shift(int level)
{
	return PAGE_SHIFT + 9 * (level - 1);
}

/* Returns the number of bytes that one entry maps. */
static inline u64 level_span(int level)
{
	return BIT_ULL(level_shift(level));
}

/* Returns the first address after those of the entry for @address. */
static inline u64 level_end(u64 address, int level)
{
	return (address | (level_span(level) - 1)) + 1;
}

/* Returns the slot for @address in @table. */
static inline u64 *level_slot(u64 *table, u64 address, int level)
{
	return &table[address >> level_shift(level) & (LEVEL_ENTRIES - 1)];
}

static inline bool level_is_leaf(u64 entry, int level)
{
	return level == 1 || entry & LEVEL_LARGE;
}

#endif /* DUNE_MEMORY_LEVEL_H */
