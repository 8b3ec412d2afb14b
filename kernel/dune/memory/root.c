// SPDX-License-Identifier: GPL-2.0-only
/*
 * If the second level is the kernel's own page table of the process, the top level is a
 * copy, one for each vCPU, of the entries that lead to user memory. The other entries
 * of the kernel's top level lead to the kernel's memory. Nested walks count as user
 * accesses (APM vol. 2, 15.25.5), so a guest could access nothing there. But with these
 * entries the guest could make the processor walk the kernel's tables, at any
 * guest-physical address:
 *  - The error code of the nested fault would tell whether the kernel has a page there.
 *  - A processor may keep entries of such walks under the guest's tag, while the kernel's
 *    flushes of its own half reach the host's tag alone: the processor would continue
 *    to walk a table that the kernel has freed.
 * All levels below the top one are the kernel's own tables: a page that the kernel maps
 * or takes away is mapped or taken away here at the same time. The entry after those that are
 * copied leads to the address space's private memory (private.c).
 *
 * The copy may differ from the original in two cases, and neither lets the guest use a table
 * that was freed:
 *  - An entry that the kernel adds is missing here. The guest's access is a nested
 *    fault, after which the entry is copied (root_fill()). It was not present, so no TLB
 *    has it.
 *  - An entry that the kernel clears led to a table that the kernel frees, after it has
 *    advanced context.tlb_gen and told the CPUs, as for any page. So the argument at
 *    second_level_enter() holds, and when that flushes, root_refresh() reads the
 *    entries again, after the count.
 */
#include <linux/gfp.h>
#include <linux/lockdep.h>
#include <linux/mm.h>
#include <asm/mem_encrypt.h>

#include "dune/compat.h"
#include "dune/memory/root.h"

/*
 * Copies entry @i, below ROOT_ENTRIES, of the process's top level as it is now. Only the
 * vCPU's thread calls this, while its guest does not run.
 */
void root_copy(struct root *root, unsigned int i)
{
	pgd_t entry = READ_ONCE(root->source[i]);

	WRITE_ONCE(root->table[i], entry);
	__assign_bit(i, root->used, pgd_val(entry));
}

/*
 * Returns whether one of eight entries is not empty. Most entries of a process's top level are
 * empty: root_create() takes 1,100 instructions less if it tests eight of them at a time (GCC 12).
 */
static bool any_of_eight(const pgd_t *source)
{
	const u64 *e = (const u64 *)source;

	return READ_ONCE(e[0]) | READ_ONCE(e[1]) | READ_ONCE(e[2]) | READ_ONCE(e[3]) |
	       READ_ONCE(e[4]) | READ_ONCE(e[5]) | READ_ONCE(e[6]) | READ_ONCE(e[7]);
}

/**
 * root_create() - a top level with all entries that @mm has now
 * @root:	filled in
 * @mm:		current->mm
 *
 * If the kernel is isolated from user mode, its own table has NX in every entry of
 * user memory. User mode's table has the same entries without NX, and is copied.
 *
 * Context: process of @mm, may sleep.
 * Return: 0 or -ENOMEM.
 */
int root_create(struct root *root, struct mm_struct *mm)
{
	const pgd_t *source = kernel_user_page_table(mm->pgd);
	unsigned int i, j;

	root->source = source;
	root->table = (pgd_t *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
	if (!root->table)
		return -ENOMEM;
	if (ROOT_ENTRIES == 1) {
		root_copy(root, 0);
		return 0;
	}
	for (i = 0; i < ROOT_USER_ENTRIES; i += 8)
		if (unlikely(any_of_eight(&source[i])))
			for (j = i; j < i + 8; j++)
				if (pgd_val(READ_ONCE(source[j])))
					root_copy(root, j);
	return 0;
}

/* Frees the table of a vCPU that must not run again, also if root_create() failed. */
void root_destroy(struct root *root)
{
	free_page((unsigned long)root->table);
}

/*
 * Returns the physical address for the processor, with the bit of memory encryption. For any
 * context.
 */
u64 root_address(const struct root *root)
{
	return __sme_pa(root->table);
}

/*
 * Copies the entries again that the vCPU has. Called after context.tlb_gen was read, with
 * interrupts off; a flush follows.
 */
void root_refresh(struct root *root)
{
	unsigned long left;
	unsigned int i;

	lockdep_assert_irqs_disabled();
	for (i = 0; i < ROOT_USER_ENTRIES; i += BITS_PER_LONG)
		for (left = root->used[i / BITS_PER_LONG]; left; left &= left - 1)
			root_copy(root, i + __ffs(left));
}
