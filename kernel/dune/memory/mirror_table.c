// SPDX-License-Identifier: GPL-2.0-only
/*
 * The page tables of a mirror: finding an entry, dropping entries, and reusing tables that
 * became empty. See mirror.c for the rule.
 */
#include <linux/lockdep.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "dune/memory/mirror_internal.h"

/* The number of empty tables that are kept for the next fills. */
#define SPARES_KEPT	16

/*
 * Returns the slot that decides about @gpa: that on level @lowest, or a higher one that is
 * empty or a leaf. @level returns its level. The lock is held.
 */
u64 *mirror_find_slot(struct mirror *m, struct mirror_tree *tree, u64 gpa, int lowest, int *level)
{
	u64 *table = tree->root;
	u64 *slot;

	lockdep_assert_held(&m->lock);
	for (*level = EPT_ROOT_LEVEL;; --*level) {
		slot = level_slot(table, gpa, *level);
		if (*level == lowest || !*slot || level_is_leaf(*slot, *level))
			return slot;
		table = ept_table_below(*slot);
	}
}

/* Frees the tables on @list, which is not valid afterwards. For any context. */
void mirror_free_tables(struct list_head *list)
{
	struct page *page, *next;

	list_for_each_entry_safe(page, next, list, lru)
		__free_page(page);
}

/* The vCPUs were kicked, so none uses the doomed tables, which are empty, any more. */
static void recycle_doomed(struct mirror *m)
{
	struct page *page, *next;

	list_for_each_entry_safe(page, next, &m->doomed, lru) {
		if (m->nr_spares == SPARES_KEPT)
			break;
		list_move(&page->lru, &m->spares);
		m->nr_spares++;
	}
	mirror_free_tables(&m->doomed);
	INIT_LIST_HEAD(&m->doomed);
}

/*
 * Makes all vCPUs leave the guest and flush their TLBs, after entries were dropped. The lock
 * is held. Interrupts are on (all notifiers are called so), and on a CPU that waits for the
 * lock they are on as well, so every CPU answers.
 */
void mirror_flush_vcpus(struct mirror *m)
{
	lockdep_assert_held(&m->lock);
	WRITE_ONCE(m->generation, m->generation + 1);
	kick_all(&m->kicks, m->generation);
	recycle_doomed(m);
}

/*
 * Drops the entries from @start to @end in @table and below it. Dropping a part of a large page
 * drops all of it. Tables that become empty are unlinked, so that the size of a mirror follows
 * what is mapped. Returns whether anything was dropped.
 */
static bool drop_below(struct mirror *m, u64 *table, int level, u64 start, u64 end)
{
	unsigned long left = ept_entries(table);
	bool dropped = false;
	u64 next;

	for (; left && start < end; start = next) {
		u64 *slot = level_slot(table, start, level);
		u64 entry = *slot;

		next = min(end, level_end(start, level));
		if (!entry)
			continue;
		left--;
		if (!level_is_leaf(entry, level)) {
			u64 *below = ept_table_below(entry);

			dropped |= drop_below(m, below, level - 1, start, next);
			if (ept_entries(below))
				continue;
			list_add(&virt_to_page(below)->lru, &m->doomed);
		}
		ept_set_entry(slot, 0);
		dropped = true;
	}
	return dropped;
}

/* Drops a tree's entries for guest-physical addresses; the lock is held. */
void mirror_drop(struct mirror *m, struct mirror_tree *tree, u64 start, u64 end)
{
	lockdep_assert_held(&m->lock);
	if (drop_below(m, tree->root, EPT_ROOT_LEVEL, start, end))
		mirror_flush_vcpus(m);
}

/* Drops the entries of all trees for guest-physical addresses; the lock is held. */
static void drop_from_all(struct mirror *m, u64 start, u64 end)
{
	struct mirror_tree *tree;
	bool dropped = false;

	lockdep_assert_held(&m->lock);
	list_for_each_entry(tree, &m->trees, link)
		dropped |= drop_below(m, tree->root, EPT_ROOT_LEVEL, start, end);
	if (dropped)
		mirror_flush_vcpus(m);
}

/* Drops all entries of a tree for memory of the process. May sleep. */
void mirror_drop_tree(struct mirror *m, struct mirror_tree *tree)
{
	unsigned long index;
	void *entry;

	granules_for_each(&m->granules, index, entry, 0, ULONG_MAX) {
		u64 start = granule_base(entry);

		spin_lock(&m->lock);
		mirror_drop(m, tree, start, start + DUNE_GRANULE_SIZE);
		spin_unlock(&m->lock);
		cond_resched();
	}
}

/*
 * Drops the entries for addresses of the process from all trees. @start and @end, which is not
 * included, are page-aligned. The lock is not held, and interrupts are on; sleeps only if
 * @may_sleep.
 */
void mirror_drop_addresses(struct mirror *m, u64 start, u64 end, bool may_sleep)
{
	unsigned long index;
	void *entry;

	granules_for_each(&m->granules, index, entry, start >> GRANULE_SHIFT,
			  (end - 1) >> GRANULE_SHIFT) {
		u64 base = (u64)index << GRANULE_SHIFT;
		u64 offset = granule_base(entry) - base;

		spin_lock(&m->lock);
		drop_from_all(m, offset + max(start, base),
			      offset + min(end, base + DUNE_GRANULE_SIZE));
		spin_unlock(&m->lock);
		if (may_sleep)
			cond_resched();
	}
}
