/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads a process's page table as the processor does, and gives the rights in EPT's format:
 * walk.c.
 */
#ifndef DUNE_MEMORY_WALK_H
#define DUNE_MEMORY_WALK_H

#include <linux/types.h>

struct mm_struct;

/*
 * The number of pages of 4 KB for which one fault makes entries, if the process has the
 * pages already: as many as Linux maps around a fault on a file.
 */
#define WALK_AROUND		16

/**
 * struct leaf - the end of the process's page table for an address
 * @slot:	in its table, which exists only as long as interrupts are off
 * @entry:	what was in the slot
 * @level:	1, 2 or 3
 * @denied:	_PAGE_RW and _PAGE_NX, as far as the levels above deny these rights
 */
struct leaf {
	const u64 *slot;
	u64 entry;
	int level;
	u64 denied;
};

void walk_init(void);
u64 walk_rights(u64 entry, int level, u64 denied);

/* Interrupts are off, from walk_page_table() until the slot is no longer used. */
bool walk_page_table(const struct mm_struct *mm, u64 address, struct leaf *leaf);
void walk_around(const struct leaf *leaf, u64 *around);

#endif /* DUNE_MEMORY_WALK_H */
