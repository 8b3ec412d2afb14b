// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's announcements of a change to a process's memory, by an mmu notifier, and
 * what a mirror does about each. See mirror.c for the rule.
 */
#include <linux/mm.h>

#include "dune/memory/mirror_internal.h"
#include "virt/compat.h"

static int mirror_invalidate_start(struct mmu_notifier *notifier,
				   const struct mmu_notifier_range *range)
{
	struct mirror *m = mirror_of(notifier);

	spin_lock(&m->lock);
	if (m->in_progress++) {
		m->start = min(m->start, range->start);
		m->end = max(m->end, range->end);
	} else {
		m->start = range->start;
		m->end = range->end;
	}
	spin_unlock(&m->lock);
	mirror_drop_addresses(m, range->start, range->end,
			      mmu_notifier_range_blockable(range));
	return 0;
}

static void mirror_invalidate_end(struct mmu_notifier *notifier,
				  const struct mmu_notifier_range *range)
{
	struct mirror *m = mirror_of(notifier);

	spin_lock(&m->lock);
	/* The page table was changed before this; pairs with mirror_fill(). */
	smp_store_release(&m->sequence, m->sequence + 1);
	m->in_progress--;
	spin_unlock(&m->lock);
}

/*
 * No thread of the process is left to run a vCPU. The invalidation that begins here never
 * ends, so that no entry is made for this mm any more: its pages are freed after this.
 */
static void mirror_release(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	struct mirror *m = mirror_of(notifier);

	spin_lock(&m->lock);
	m->in_progress++;
	m->start = 0;
	m->end = ULONG_MAX;
	spin_unlock(&m->lock);
	mirror_drop_addresses(m, 0, ULONG_MAX, true);
}

/*
 * Returns whether the guest has used a page of the process. The page may have any size, and
 * so lies in one granule. If the processor has no accessed bits in EPT, a page counts as used
 * while it is mirrored, and with @clear its entries are dropped to clear that.
 */
static bool is_young(struct mmu_notifier *notifier, unsigned long start,
		     unsigned long size, bool clear, bool flush)
{
	struct mirror *m = mirror_of(notifier);
	bool young = false;
	u64 first, gpa;
	int level;

	if (!granules_to_gpa(&m->granules, start, &first))
		return false;
	spin_lock(&m->lock);
	for (gpa = first; gpa < first + size; gpa = level_end(gpa, level)) {
		u64 *slot = mirror_find_slot(m, gpa, 1, &level);

		if (!*slot || (mirror_machine.accessed && !(*slot & VMX_EPT_ACCESS_BIT)))
			continue;
		young = true;
		if (clear && mirror_machine.accessed)
			clear_bit(ilog2(VMX_EPT_ACCESS_BIT),
				  (unsigned long *)slot);
	}
	if (young && clear && !mirror_machine.accessed)
		mirror_drop(m, first, first + size);
	else if (young && flush)
		mirror_flush_vcpus(m);
	spin_unlock(&m->lock);
	return young;
}

static young_t mirror_clear_flush_young(struct mmu_notifier *notifier,
					struct mm_struct *mm,
					unsigned long start, unsigned long end)
{
	return is_young(notifier, start, end - start, true, true);
}

static young_t mirror_clear_young(struct mmu_notifier *notifier,
				  struct mm_struct *mm,
				  unsigned long start, unsigned long end)
{
	return is_young(notifier, start, end - start, true, false);
}

static young_t mirror_test_young(struct mmu_notifier *notifier,
				 struct mm_struct *mm, unsigned long address)
{
	return is_young(notifier, address, PAGE_SIZE, false, false);
}

const struct mmu_notifier_ops mirror_ops = {
	.invalidate_range_start = mirror_invalidate_start,
	.invalidate_range_end = mirror_invalidate_end,
	.clear_flush_young = mirror_clear_flush_young,
	.clear_young = mirror_clear_young,
	.test_young = mirror_test_young,
	.release = mirror_release,
	.alloc_notifier = mirror_alloc,
	.free_notifier = mirror_free,
};
