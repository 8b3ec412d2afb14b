/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a process may do with its memory, as the processor sees it in the process's page
 * table, in EPT's terms: walk.c.
 */
#ifndef DUNE_WALK_H
#define DUNE_WALK_H

#include <linux/types.h>

struct mm_struct;

/*
 * At one fault, entries are made for so many pages of 4 KB, where the process has
 * them already: as many as Linux maps around a fault on a file.
 */
#define AROUND		16

/**
 * struct leaf - where the process's page table ends for an address
 * @slot:	in its table, which exists only as long as interrupts are off
 * @entry:	what was in the slot
 * @level:	1, 2 or 3
 * @denied:	of _PAGE_RW and _PAGE_NX, what the levels above deny
 */
struct leaf {
	const u64 *slot;
	u64 entry;
	int level;
	u64 denied;
};

void walk_init(void);
u64 walk_rights(u64 entry, int level, u64 denied);

/* Interrupts off, from walk_page_table() until the slot is no longer used. */
bool walk_page_table(const struct mm_struct *mm, u64 address, struct leaf *leaf);
void walk_around(const struct leaf *leaf, u64 *around);

#endif /* DUNE_WALK_H */
