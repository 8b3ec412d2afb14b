// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's announcements of a change to a process's memory, by an mmu notifier, and
 * what a mirror does about each. See mirror.c for the rule.
 */
#include <linux/lockdep.h>
#include <linux/mm.h>

#include "dune/compat.h"
#include "dune/memory/mirror_internal.h"

/*
 * Returns whether the kernel may not announce the end of this change. change_protection() takes a
 * range that begins at address 0 for "no range yet", and announces no end of it (mm/mprotect.c,
 * 6.1 to 6.12). It always announces the end of a change in a hugetlb mapping. So that no change
 * ends twice, mirror_settle() ends each of these changes, and mirror_invalidate_end() none.
 */
static bool may_end_silently(const struct mmu_notifier_range *range)
{
	return !range->start && range->event == MMU_NOTIFY_PROTECTION_VMA;
}

/*
 * Records that @count invalidations have ended. The lock is held. The number must not wrap, after
 * which no invalidation would count as in progress: Linux 6.7 announces the start of PAGEMAP_SCAN
 * without mmap_lock (CVE-2024-26617, mended in 6.8), so a mirror may get an end without a start.
 * Such an end may still take away another one's count: this prevents the worst only.
 */
static void end_invalidations(struct mirror *m, unsigned long count)
{
	lockdep_assert_held(&m->lock);
	/* The page table was changed before this; pairs with the acquire in try_fill(). */
	smp_store_release(&m->sequence, m->sequence + 1);
	m->in_progress -= min(count, m->in_progress);
}

/**
 * mirror_settle() - end the invalidations whose end is not announced
 * @m:		the mirror of current->mm
 *
 * Rights are changed with mmap_lock held. So no such change is in progress while this function
 * holds mmap_lock for writing, and all that are counted in @m->unended have ended. Until then
 * mirror_fill() refuses entries in their range, as in that of any change in progress.
 *
 * Context: process, without mmap_lock and @m->lock, may sleep. If a fatal signal ends the wait for
 * mmap_lock, nothing changes.
 */
void mirror_settle(struct mirror *m)
{
	if (mmap_write_lock_killable(m->notifier.mm))
		return;
	spin_lock(&m->lock);
	end_invalidations(m, m->unended);
	m->unended = 0;
	spin_unlock(&m->lock);
	mmap_write_unlock(m->notifier.mm);
}

/*
 * Returns whether @range is that of a fork, which takes the right to write from each mapping that
 * it copies, one after the other, and nothing else. What cleans the pages of a file announces a
 * page or a folio in the same way, mostly for other processes and from the kernel's threads.
 */
static bool only_protects(const struct mmu_notifier_range *range)
{
	return range->event == MMU_NOTIFY_PROTECTION_PAGE && range->mm == current->mm &&
	       range->end - range->start > PAGE_SIZE && mmu_notifier_range_blockable(range);
}

/*
 * Counts the invalidation, so that no entry is made in its range until its end, and then drops
 * those that exist. If the lock's holder finds no entry at all, the vCPUs have flushed all that
 * there were.
 *
 * At the first announcement of a fork, all entries lose the right to write instead, so that the
 * others find none that has it. But if there are several vCPUs, the others get the right again
 * during the fork, and would lose it at each announcement.
 */
static int mirror_invalidate_start(struct mmu_notifier *notifier,
				   const struct mmu_notifier_range *range)
{
	struct mirror *m = mirror_of(notifier);
	bool protects = only_protects(range);
	bool nothing;

	spin_lock(&m->lock);
	if (m->in_progress++) {
		m->start = min(m->start, range->start);
		m->end = max(m->end, range->end);
	} else {
		m->start = range->start;
		m->end = range->end;
	}
	m->unended += may_end_silently(range);
	nothing = !m->populated || (protects && !m->writable);
	spin_unlock(&m->lock);
	if (nothing)
		return 0;
	if (protects && READ_ONCE(m->kicks.count) == 1)
		mirror_protect(m);
	else
		mirror_drop_addresses(m, range->start, range->end,
				      mmu_notifier_range_blockable(range));
	return 0;
}

/* The kernel has changed the page table, and entries may be made again. */
static void mirror_invalidate_end(struct mmu_notifier *notifier,
				  const struct mmu_notifier_range *range)
{
	struct mirror *m = mirror_of(notifier);

	if (unlikely(may_end_silently(range)))
		return;
	spin_lock(&m->lock);
	end_invalidations(m, 1);
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
	m->ended = true;
	m->in_progress++;
	m->start = 0;
	m->end = ULONG_MAX;
	spin_unlock(&m->lock);
	mirror_drop_addresses(m, 0, ULONG_MAX, true);
}

/*
 * age_page() for the guests of one address space. @first: the page's guest-physical address. The
 * lock is held.
 */
static bool age_page_in(struct mirror *m, struct mirror_tree *tree, u64 first, u64 size, bool clear)
{
	bool young = false;
	int level;
	u64 gpa;

	for (gpa = first; gpa < first + size; gpa = level_end(gpa, level)) {
		u64 *slot = mirror_find_slot(m, tree, gpa, 1, &level);

		if (!*slot || (mirror_machine.accessed && !(*slot & VMX_EPT_ACCESS_BIT)))
			continue;
		young = true;
		if (clear && mirror_machine.accessed)
			clear_bit(ilog2(VMX_EPT_ACCESS_BIT), (unsigned long *)slot);
	}
	if (young && clear && !mirror_machine.accessed)
		mirror_drop(m, tree, first, first + size);
	return young;
}

/*
 * Ages a page of the process: returns whether a guest has used it. @clear: from now on it counts
 * as not used; @flush: by TLBs as well. A page has at most 1 GB and is aligned to its size, so it
 * lies in one granule. If the processor has no accessed bits in EPT, a page counts as used while
 * it is mirrored, and @clear drops its entries.
 */
static bool age_page(struct mmu_notifier *notifier, unsigned long start,
		     unsigned long size, bool clear, bool flush)
{
	struct mirror *m = mirror_of(notifier);
	struct mirror_tree *tree;
	bool young = false;
	u64 first;

	if (!granules_to_gpa(&m->granules, start, &first))
		return false;
	spin_lock(&m->lock);
	list_for_each_entry(tree, &m->trees, link)
		young |= age_page_in(m, tree, first, size, clear);
	/* Dropped entries were flushed by mirror_drop(). */
	if (young && flush && mirror_machine.accessed)
		mirror_flush_vcpus(m);
	spin_unlock(&m->lock);
	return young;
}

static young_t mirror_clear_flush_young(struct mmu_notifier *notifier,
					struct mm_struct *mm,
					unsigned long start, unsigned long end)
{
	return age_page(notifier, start, end - start, true, true);
}

static young_t mirror_clear_young(struct mmu_notifier *notifier,
				  struct mm_struct *mm,
				  unsigned long start, unsigned long end)
{
	return age_page(notifier, start, end - start, true, false);
}

static young_t mirror_test_young(struct mmu_notifier *notifier,
				 struct mm_struct *mm, unsigned long address)
{
	return age_page(notifier, address, PAGE_SIZE, false, false);
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
