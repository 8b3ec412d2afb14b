/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The top level of a second level that is shared with the kernel: root.c.
 */
#ifndef DUNE_MEMORY_ROOT_H
#define DUNE_MEMORY_ROOT_H

#include <linux/bitmap.h>
#include <linux/mm.h>
#include <asm/pgtable.h>

/* The entries that lead to user memory; the other half leads to the kernel's. */
#define ROOT_ENTRIES	(PTRS_PER_PGD / 2)

/**
 * struct root - the top level of a vCPU's second-level page table (root.c)
 * @table:	one page, of which the upper half stays empty; NULL if the second level
 *		is mirrored
 * @source:	the process's top level, of which @table is a copy
 * @used:	entries of the lower half that were not empty when they were copied
 *
 * Only the vCPU's thread changes it, and never while the guest runs.
 */
struct root {
	pgd_t *table;
	const pgd_t *source;
	DECLARE_BITMAP(used, ROOT_ENTRIES);
};

int root_create(struct root *root, struct mm_struct *mm);
void root_destroy(struct root *root);
u64 root_address(const struct root *root);
void root_copy(struct root *root, unsigned int i);
void root_refresh(struct root *root);

/* Copies the entry of @address, below TASK_SIZE_MAX, after a nested fault there. */
static inline void root_fill(struct root *root, u64 address)
{
	unsigned int i = pgd_index(address);

	if (unlikely(pgd_val(READ_ONCE(root->source[i])) !=
		     pgd_val(root->table[i])))
		root_copy(root, i);
}

#endif /* DUNE_MEMORY_ROOT_H */
