// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where the second-level page table is the kernel's own of the process, its top
 * level is a copy, one for each vCPU, of the entries that lead to user memory.
 * The rest of the kernel's own top level leads to the kernel's memory. Nested
 * walks count as user accesses (APM vol. 2, 15.25.5), so a guest reaches nothing
 * there; but its walks would go that way at any guest-physical address that it
 * likes, and
 *  - the error code of the nested fault tells whether the kernel has a page there;
 *  - a processor may keep entries of such walks under the guest's tag, and the
 *    kernel's flushes of its own half reach the host's tag alone: a table that
 *    the kernel has freed would be walked on.
 * All levels below are the kernel's own: a page that it maps or takes away is
 * mapped or taken away here.
 *
 * The copy is exact where it matters:
 *  - An entry that the kernel adds is not here. The guest's access is a nested
 *    fault, after which the entry is copied (root_fill()). It was not present,
 *    so no TLB has it.
 *  - An entry that the kernel clears leads to a table that it frees, after it
 *    has advanced context.tlb_gen and told the CPUs, as for any page. So the
 *    argument at vcpu_must_flush() holds, and where that flushes, the entries
 *    are read again, after the count: root_refresh().
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <asm/mem_encrypt.h>

#include "virt/compat.h"
#include "dune/memory/root.h"

void root_copy(struct root *root, unsigned int i)
{
	pgd_t entry = READ_ONCE(root->source[i]);

	WRITE_ONCE(root->table[i], entry);
	__assign_bit(i, root->used, pgd_val(entry));
}

/**
 * root_create() - a top level with all entries that @mm has now
 *
 * Where the kernel is isolated from user mode, its own table has NX in every
 * entry of user memory: the user's has the same entries without.
 *
 * Context: process of @mm, may sleep.
 * Return: 0 or -ENOMEM.
 */
int root_create(struct root *root, struct mm_struct *mm)
{
	const u64 *source = (const u64 *)user_page_table(mm->pgd);
	unsigned int i, j;

	root->source = (const pgd_t *)source;
	root->table = (pgd_t *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
	if (!root->table)
		return -ENOMEM;
	/* A process has a handful of them: look at four at once. */
	for (i = 0; i < ROOT_ENTRIES; i += 4) {
		if (likely(!(READ_ONCE(source[i]) | READ_ONCE(source[i + 1]) |
			     READ_ONCE(source[i + 2]) |
			     READ_ONCE(source[i + 3]))))
			continue;
		for (j = i; j < i + 4; j++)
			root_copy(root, j);
	}
	return 0;
}

void root_destroy(struct root *root)
{
	free_page((unsigned long)root->table);
}

/* For the processor: physical, with the bit of memory encryption. */
u64 root_address(const struct root *root)
{
	return __sme_pa(root->table);
}

/* Interrupts off, after context.tlb_gen was read; a flush follows. */
void root_refresh(struct root *root)
{
	unsigned long left;
	unsigned int i;

	for (i = 0; i < ROOT_ENTRIES; i += BITS_PER_LONG)
		for (left = root->used[i / BITS_PER_LONG]; left;
		     left &= left - 1)
			root_copy(root, i + __ffs(left));
}
