/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a process may do with its memory, as its page table says it to the
 * processor, in EPT's terms: walk.c.
 */
#ifndef DUNE_WALK_H
#define DUNE_WALK_H

#include <linux/types.h>

struct mm_struct;

/*
 * Pages of 4 KB for which entries are made at one fault, where the process has
 * them already: as many as Linux maps around a fault on a file.
 */
#define AROUND		16

/**
 * struct leaf - where the process's page table ends for an address
 * @slot:	in its table, which is there only as long as interrupts are off
 * @entry:	what was in it
 * @level:	1, 2 or 3
 * @denied:	of _PAGE_RW and _PAGE_NX, what the levels above take away
 */
struct leaf {
	const u64 *slot;
	u64 entry;
	int level;
	u64 denied;
};

void walk_init(void);
u64 walk_rights(u64 entry, int level, u64 denied);

/* Interrupts off, from walk() until the slot is used no more. */
bool walk(const struct mm_struct *mm, u64 address, struct leaf *leaf);
void walk_around(const struct leaf *leaf, u64 *around);

#endif /* DUNE_WALK_H */
