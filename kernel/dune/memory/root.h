/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The top level of a second level that is shared with the kernel: root.c.
 */
#ifndef DUNE_MEMORY_ROOT_H
#define DUNE_MEMORY_ROOT_H

#include <linux/bitmap.h>
#include <linux/mm.h>
#include <asm/pgtable.h>

/* The entries of the process's top level that can lead to user memory. */
#define ROOT_USER_ENTRIES	(PTRS_PER_PGD / 2)

/*
 * The entries that are copied: those for the addresses of 47 bits that guests use. With five
 * levels the first one is enough. The next entry leads to private memory.
 */
#define ROOT_ENTRIES	(pgtable_l5_enabled() ? 1 : ROOT_USER_ENTRIES)

/**
 * struct root - the top level of a vCPU's second-level page table (root.c)
 * @table:	one page, which is empty after the entry for private memory; NULL if the
 *		second level is mirrored
 * @source:	the process's top level, of which the first ROOT_ENTRIES are copied
 * @used:	entries that were not empty when they were copied
 *
 * Only the vCPU's thread changes it, and never while the guest runs.
 */
struct root {
	pgd_t *table;
	const pgd_t *source;
	DECLARE_BITMAP(used, ROOT_USER_ENTRIES);
};

int root_create(struct root *root, struct mm_struct *mm);
void root_destroy(struct root *root);
u64 root_address(const struct root *root);
void root_copy(struct root *root, unsigned int i);
void root_refresh(struct root *root);

/*
 * Links private memory, to whose tables @entry leads, into the entry after those that are copied.
 * No flush is needed: that entry was not present, or has this value already. Only the vCPU's
 * thread calls this.
 */
static inline void root_link_private(struct root *root, u64 entry)
{
	WRITE_ONCE(root->table[ROOT_ENTRIES], __pgd(entry));
}

/*
 * Copies the entry of @address, which has 47 bits, after a nested fault there. Called by the
 * vCPU's thread, like root_copy().
 */
static inline void root_fill(struct root *root, u64 address)
{
	unsigned int i = pgd_index(address);

	if (unlikely(pgd_val(READ_ONCE(root->source[i])) != pgd_val(root->table[i])))
		root_copy(root, i);
}

#endif /* DUNE_MEMORY_ROOT_H */
