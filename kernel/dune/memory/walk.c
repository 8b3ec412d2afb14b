// SPDX-License-Identifier: GPL-2.0-only
/*
 * The process's page table, read as the processor reads it.
 */
#include <linux/lockdep.h>
#include <linux/mm.h>
#include <asm/msr.h>
#include <asm/pgtable.h>
#include <asm/vmx.h>

#include "dune/compat.h"
#include "dune/memory/level.h"
#include "dune/memory/walk.h"

/* A memory type of the PAT. UC is 0. */
#define UC_MINUS	7

static u64 pat __ro_after_init;

/* In EPT's format: the memory type of an entry that has no bit for it. */
static u64 first_type __ro_after_init;

/*
 * Returns the memory type that a leaf selects from the PAT (SDM vol. 3, 12.12.3). EPT
 * has the same numbers, but no UC-.
 */
static u64 memory_type(u64 entry, int level)
{
	u64 pat_bit = level == 1 ? _PAGE_PAT : _PAGE_PAT_LARGE;
	int index = (entry & _PAGE_PWT ? 1 : 0) | (entry & _PAGE_PCD ? 2 : 0) |
		    (entry & pat_bit ? 4 : 0);
	u64 type = pat >> (8 * index) & 7;

	return (type == UC_MINUS ? 0 : type) << VMX_EPT_MT_EPTE_SHIFT;
}

/* Learns which memory types the bits of an entry select. Called once, at load. */
void walk_init(void)
{
	rdmsrq(MSR_IA32_CR_PAT, pat);
	first_type = memory_type(0, 1);
}

static bool is_user_page(u64 entry)
{
	return !(~entry & (_PAGE_PRESENT | _PAGE_USER));
}

/* The bits of an entry on level 1 by which walk_rights() decides. */
#define RIGHTS_BITS	(_PAGE_RW | _PAGE_DIRTY | _PAGE_NX | _PAGE_PWT | _PAGE_PCD | _PAGE_PAT)

/*
 * Returns the rights and the memory type of an entry in EPT's format. On level 1 it uses no other
 * bits of the entry than RIGHTS_BITS.
 *
 * The accessed bit makes no difference: on x86 no fault sets it for a read
 * (ptep_set_access_flags()); that is left to the processor.
 */
u64 walk_rights(u64 entry, int level, u64 denied)
{
	const u64 type_bits = _PAGE_PWT | _PAGE_PCD | _PAGE_PAT | _PAGE_PAT_LARGE;
	u64 rights = VMX_EPT_READABLE_MASK;

	/* Most entries have none of these bits, but for that of a large page. */
	rights |= entry & type_bits ? memory_type(entry, level) : first_type;
	if (entry & _PAGE_DIRTY && entry & ~denied & _PAGE_RW)
		rights |= VMX_EPT_WRITABLE_MASK;
	if (!((entry | denied) & _PAGE_NX))
		rights |= VMX_EPT_EXECUTABLE_MASK;
	return rights;
}

/*
 * Reads the page table as the processor does, with interrupts off and no lock, as
 * get_user_pages_fast() does. The kernel frees a table only after it has waited, by a
 * flush IPI or for a grace period of RCU-sched, for all CPUs that have interrupts off.
 * The result may be stale by then; the caller's check of the sequence detects that.
 *
 * NX above the third level does not come from the process: if Linux isolates its page tables
 * (pti=on), it sets NX there, in the copy that is used in the kernel.
 *
 * Returns false if no page is mapped for user mode.
 */
bool walk_page_table(const struct mm_struct *mm, u64 address, struct leaf *leaf)
{
	u64 *table = (u64 *)mm->pgd, *slot = NULL;
	u64 entry = 0, all = _PAGE_RW, any = 0;
	int level;

	lockdep_assert_irqs_disabled();
	if (pgtable_l5_enabled()) {
		entry = READ_ONCE(*level_slot(table, address, 5));
		if (!is_user_page(entry))
			return false;
		all &= entry;
		table = __va(entry & PTE_PFN_MASK);
	}
	/* Unrolled, with constant levels, this takes half as many instructions. */
#pragma GCC unroll 4
	for (level = 4; level; level--) {
		slot = level_slot(table, address, level);
		entry = READ_ONCE(*slot);
		if (!is_user_page(entry))
			return false;
		if (level_is_leaf(entry, level))
			break;
		all &= entry;
		any |= level > 3 ? 0 : entry;
		table = __va(entry & PTE_PFN_MASK);
	}
	leaf->slot = slot;
	leaf->entry = entry;
	leaf->level = level;
	leaf->denied = (~all & _PAGE_RW) | (any & _PAGE_NX);
	return true;
}

/*
 * Fills @around with entries in EPT's format for the pages around @leaf, which is a page of
 * 4 KB; 0 where the process has no page. This guest has not used them yet, so their accessed
 * bit is clear. Interrupts have been off since walk_page_table().
 */
void walk_around(const struct leaf *leaf, u64 *around)
{
	const u64 *first = PTR_ALIGN_DOWN(leaf->slot, WALK_AROUND * sizeof(u64));
	u64 rights = walk_rights(leaf->entry, 1, leaf->denied), last = leaf->entry;
	int i;

	lockdep_assert_irqs_disabled();
	for (i = 0; i < WALK_AROUND; i++) {
		u64 entry = READ_ONCE(first[i]);

		around[i] = 0;
		if (!is_user_page(entry))
			continue;
		/* Most neighbours have the same rights. */
		if ((entry ^ last) & RIGHTS_BITS) {
			rights = walk_rights(entry, 1, leaf->denied);
			last = entry;
		}
		around[i] = (entry & PTE_PFN_MASK) | VMX_EPT_IPAT_BIT | VMX_EPT_DIRTY_BIT | rights;
	}
}
