// SPDX-License-Identifier: GPL-2.0-only
/*
 * The page tables of a mirror: finding an entry, dropping entries, and reusing tables that
 * became empty. See mirror.c for the rule.
 */
#include <linux/lockdep.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "dune/memory/mirror_internal.h"
#include "dune/memory/pool.h"

/* The number of empty tables that are kept for the next fills. */
#define SPARES_KEPT	16

/* A table with more entries than this is cleared as a whole. */
#define FEW_ENTRIES	64

/* The level on which one entry stands for a granule. */
#define GRANULE_LEVEL	3

/*
 * The largest range of which each granule is looked for in each tree. For a larger one, a visit of
 * the entries that each tree has, drop_wide(), is taken to be less work.
 */
#define NARROW_RANGE	(LEVEL_ENTRIES * DUNE_GRANULE_SIZE)

/* Sets an entry for memory of the process. @level: the slot's. The lock is held. */
void mirror_set_entry(struct mirror *m, u64 *slot, int level, u64 entry)
{
	lockdep_assert_held(&m->lock);
	if (level == GRANULE_LEVEL)
		m->populated += !!entry - !!*slot;
	ept_set_entry(slot, entry);
}

/*
 * Returns the slot that decides about @gpa: that on level @lowest, or a higher one that is
 * empty or a leaf. @level returns its level. The lock is held.
 */
u64 *mirror_find_slot(struct mirror *m, struct mirror_tree *tree, u64 gpa, int lowest, int *level)
{
	u64 *table = tree->root;
	u64 *slot = NULL;
	int at;

	lockdep_assert_held(&m->lock);
	/* As in walk_page_table(). */
#pragma GCC unroll 4
	for (at = EPT_ROOT_LEVEL; at; at--) {
		slot = level_slot(table, gpa, at);
		if (at == lowest || !*slot || level_is_leaf(*slot, at))
			break;
		table = ept_table_below(*slot);
	}
	*level = at;
	return slot;
}

/*
 * Returns the slot of the first entry that is not 0, from @slot to @end, or the latter. Most tables
 * have few entries, so most of the work of a drop is done here.
 */
static u64 *first_entry(u64 *slot, u64 *end)
{
	while (end - slot >= 8 && !(slot[0] | slot[1] | slot[2] | slot[3] |
				    slot[4] | slot[5] | slot[6] | slot[7]))
		slot += 8;
	while (slot < end && !*slot)
		slot++;
	return slot;
}

/*
 * Clears a table that is in no other. One that has few entries is searched for them, which is less
 * work than to clear all of it.
 */
static void clear_table(struct page *page)
{
	u64 *table = page_address(page), *slot = ept_lowest(table);
	u64 *last = table + LEVEL_ENTRIES - 1;
	unsigned long left = ept_entries(table);

	set_page_private(page, 0);
	if (left > FEW_ENTRIES) {
		clear_page(table);
		return;
	}
	for (; left; left--, slot++) {
		if (!*slot)
			slot = first_entry(slot, last);
		*slot = 0;
	}
}

/*
 * Gives the tables on @list, which are in no other table, to the pool, or frees them. The list is
 * not valid afterwards. For any context.
 */
void mirror_free_tables(struct mirror *m, struct list_head *list)
{
	struct page *page, *next;

	list_for_each_entry_safe(page, next, list, lru) {
		if (pool_wants_table(m->pool)) {
			clear_table(page);
			pool_give_table(m->pool, page, 0);
		} else {
			__free_page(page);
		}
	}
}

/*
 * No vCPU uses the doomed tables any more. Keeps some of them, unless the process ends and no entry
 * is made any more, and gives up the others. The lock is held.
 */
static void recycle_doomed(struct mirror *m)
{
	struct page *page, *next;

	lockdep_assert_held(&m->lock);
	list_for_each_entry_safe(page, next, &m->doomed, lru) {
		if (m->ended || m->nr_spares == SPARES_KEPT)
			break;
		clear_table(page);
		list_move(&page->lru, &m->spares);
		m->nr_spares++;
	}
	mirror_free_tables(m, &m->doomed);
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
 * Drops the entries of @table, of level 1, from @start to @end. Returns whether there were any. The
 * lock is held.
 */
static bool drop_pages(u64 *table, u64 start, u64 end)
{
	u64 *slot = level_slot(table, start, 1), *last = level_slot(table, end - 1, 1);
	unsigned long all = ept_entries(table), left = all;

	slot = max(slot, ept_lowest(table));
	while (left && slot <= last) {
		slot = first_entry(slot, last);
		for (; slot <= last && *slot; slot++, left--)
			WRITE_ONCE(*slot, 0);
		/* The entry here is 0 already. */
		slot++;
	}
	ept_set_entries(table, left);
	return left < all;
}

/*
 * Drops the entries from @start to @end in @table and below it. Dropping a part of a large page
 * drops all of it. Tables that become empty are unlinked, so that the size of a mirror follows
 * what is mapped. A table of level 1 that is dropped as a whole is unlinked with its entries:
 * clearing them would be most of the work. Returns whether anything was dropped. The lock is held.
 */
static bool drop_below(struct mirror *m, u64 *table, int level, u64 start, u64 end)
{
	unsigned long left = ept_entries(table);
	bool dropped = false;
	u64 next;

	if (level == 1)
		return drop_pages(table, start, end);
	for (; left && start < end; start = next) {
		u64 *first = level_slot(table, start, level);
		u64 *last = level_slot(table, end - 1, level);
		u64 *slot = first_entry(clamp(ept_lowest(table), first, last), last);
		u64 skipped = slot - first;
		u64 entry = *slot;

		if (skipped)
			start = level_end(start, level) + (skipped - 1) * level_span(level);
		next = min(end, level_end(start, level));
		if (!entry)
			break;
		left--;
		if (!level_is_leaf(entry, level)) {
			u64 *below = ept_table_below(entry);

			if (level > 2 || next - start < level_span(level)) {
				dropped |= drop_below(m, below, level - 1, start, next);
				if (ept_entries(below))
					continue;
			}
			list_add(&virt_to_page(below)->lru, &m->doomed);
		}
		mirror_set_entry(m, slot, level, 0);
		dropped = true;
	}
	return dropped;
}

/*
 * Drops a tree's entries from @start to @end, guest-physical addresses of one granule. Returns
 * whether anything was dropped. Granule 0 is for private memory, whose tables are not this file's.
 * The lock is held.
 */
static bool drop_from(struct mirror *m, struct mirror_tree *tree, u64 start, u64 end)
{
	lockdep_assert_held(&m->lock);
	if (WARN_ON_ONCE(start < DUNE_GRANULE_SIZE || start >= end ||
			 end > round_down(start, DUNE_GRANULE_SIZE) + DUNE_GRANULE_SIZE))
		return false;
	return drop_below(m, tree->root, EPT_ROOT_LEVEL, start, end);
}

/* Drops a tree's entries for guest-physical addresses of one granule. The lock is held. */
void mirror_drop(struct mirror *m, struct mirror_tree *tree, u64 start, u64 end)
{
	if (drop_from(m, tree, start, end))
		mirror_flush_vcpus(m);
}

/*
 * Drops a tree's entries for guest-physical addresses of one granule. Returns whether anything was
 * dropped. Most trees have no entry for the granule, and cost only this look. The lock is held.
 */
static bool drop_in_granule(struct mirror *m, struct mirror_tree *tree, u64 start, u64 end)
{
	int level;

	return *mirror_find_slot(m, tree, start, GRANULE_LEVEL, &level) &&
	       drop_from(m, tree, start, end);
}

/*
 * Drops the entries for addresses of the process from all trees, if they lie in few granules: looks
 * at each granule of the range in each tree. May sleep.
 */
static void drop_narrow(struct mirror *m, u64 start, u64 end)
{
	struct granule_walk walk = {
		.first = start >> GRANULE_SHIFT,
		.last = (end - 1) >> GRANULE_SHIFT,
	};

	while (granules_next(&m->granules, &walk)) {
		u64 base = (u64)walk.gigabyte << GRANULE_SHIFT;
		u64 offset = walk.gpa - base;
		struct mirror_tree *tree;
		bool dropped = false;

		spin_lock(&m->lock);
		list_for_each_entry(tree, &m->trees, link)
			dropped |= drop_in_granule(m, tree, offset + max(start, base),
						   offset + min(end, base + DUNE_GRANULE_SIZE));
		if (dropped)
			mirror_flush_vcpus(m);
		spin_unlock(&m->lock);
		cond_resched();
	}
}

/**
 * struct place - how far a walk of the trees has come
 * @tree:	the number of a tree; those with smaller numbers were visited
 * @gpa:	the granule of that tree that is visited next
 */
struct place {
	u64 tree;
	u64 gpa;
};

/* Returns whether the tree has an entry for memory of the process. The lock is held. */
static bool has_entries(const struct mirror_tree *tree)
{
	return ept_entries(tree->root) > 1 || ept_entries(tree->low) > 1 + !!*tree->low;
}

/*
 * Drops the entries of one granule of a tree that are for addresses of the process from @start to
 * @end. @gpa: of the granule; returns the next one that the tree may have an entry for. Returns
 * whether anything was dropped. The lock is held.
 */
static bool drop_next(struct mirror *m, struct mirror_tree *tree, u64 *gpa, u64 start, u64 end)
{
	u64 first = *gpa, base;
	int level;
	u64 entry = *mirror_find_slot(m, tree, first, GRANULE_LEVEL, &level);

	*gpa = level_end(first, level);
	if (!entry || !granules_to_address(&m->granules, first, &base))
		return false;
	start = max(start, base);
	end = min(end, base + DUNE_GRANULE_SIZE);
	return start < end && drop_from(m, tree, first + start - base, first + end - base);
}

/*
 * Continues drop_wide() at @place, until it is done or another thread needs the CPU. Returns
 * whether it is done. The lock is held.
 */
static bool drop_some(struct mirror *m, struct place *place, u64 start, u64 end, bool may_sleep)
{
	u64 last = (u64)mirror_machine.granules << GRANULE_SHIFT;
	struct mirror_tree *tree;
	bool dropped = false;
	bool stop = false;

	lockdep_assert_held(&m->lock);
	list_for_each_entry(tree, &m->trees, link) {
		if (tree->number < place->tree)
			continue;
		if (tree->number > place->tree)
			*place = (struct place) { tree->number, DUNE_GRANULE_SIZE };
		while (!stop && place->gpa < last && has_entries(tree)) {
			dropped |= drop_next(m, tree, &place->gpa, start, end);
			stop = may_sleep && need_resched();
		}
		if (stop)
			break;
	}
	if (dropped)
		mirror_flush_vcpus(m);
	return !stop;
}

/*
 * Drops the entries for addresses of the process from all trees, if they can lie in many granules:
 * visits the granules for which a tree has an entry, and looks which addresses they are for. So the
 * time depends on the size of the trees, and not on the number of granules in the range times that
 * of the trees.
 *
 * The lock is dropped in between, after the vCPUs have flushed what was dropped. Trees are added
 * and removed meanwhile, but no entry for the range is made, since the caller has counted its
 * invalidation. So a tree that comes has none; a tree that goes has dropped its own; and what was
 * visited has none when the walk continues after it, in the order of the trees' numbers.
 */
static void drop_wide(struct mirror *m, u64 start, u64 end, bool may_sleep)
{
	struct place place = { 0 };
	bool done;

	do {
		spin_lock(&m->lock);
		done = drop_some(m, &place, start, end, may_sleep);
		spin_unlock(&m->lock);
		if (may_sleep)
			cond_resched();
	} while (!done);
}

/*
 * Takes the right to write from the next @left entries of a table from @slot on, which are not 0,
 * and from all below them. @level: the table's. Returns whether any had it. @done: set to false if
 * another thread needs the CPU, and then some entries may still have it.
 */
static bool protect_from(u64 *slot, unsigned long left, int level, bool *done)
{
	u64 *last = PTR_ALIGN_DOWN(slot, PAGE_SIZE) + LEVEL_ENTRIES - 1, *below;
	bool changed = false;

	for (; left && *done; left--, slot++) {
		if (!*slot)
			slot = first_entry(slot, last);
		if (!level_is_leaf(*slot, level)) {
			below = ept_table_below(*slot);
			*done = !need_resched();
			changed |= protect_from(ept_lowest(below), ept_entries(below), level - 1,
						done);
		} else if (*slot & VMX_EPT_WRITABLE_MASK) {
			/* The processor may set the accessed bit at the same time. */
			clear_bit(ilog2(VMX_EPT_WRITABLE_MASK), (unsigned long *)slot);
			changed = true;
		}
	}
	return changed;
}

/*
 * The same for all entries for memory of the process in a tree: those of both tables that always
 * exist, but for their first. The lock is held.
 */
static bool protect_tree(struct mirror *m, struct mirror_tree *tree, bool *done)
{
	u64 *root = tree->root, *low = tree->low;

	lockdep_assert_held(&m->lock);
	return protect_from(low + 1, ept_entries(low) - 1 - !!*low, GRANULE_LEVEL, done) |
	       protect_from(root + 1, ept_entries(root) - 1, EPT_ROOT_LEVEL, done);
}

/*
 * Takes the right to write from all entries for memory of the process. If another thread needs the
 * CPU meanwhile, as after some milliseconds with a large mirror, drops them instead. The
 * invalidation of some of these addresses was counted. The lock is not held; may sleep.
 */
void mirror_protect(struct mirror *m)
{
	struct mirror_tree *tree;
	bool changed = false;
	bool done = true;

	spin_lock(&m->lock);
	list_for_each_entry(tree, &m->trees, link)
		changed |= protect_tree(m, tree, &done);
	if (changed)
		mirror_flush_vcpus(m);
	/* Still under the lock under which all entries were visited. */
	m->writable &= !done;
	spin_unlock(&m->lock);
	if (!done)
		drop_wide(m, 0, ULONG_MAX, true);
}

/*
 * Drops the entries for addresses of the process from all trees. @start and @end, which is not
 * included, are page-aligned. The invalidation was counted: no entry for these addresses is made.
 * The lock is not held, and interrupts are on; sleeps only if @may_sleep.
 *
 * Only the OOM killer's thread, and the caller of process_mrelease(), must not sleep. They take the
 * memory of a dying process, one mapping after the other. All entries are dropped for the first
 * mapping, so that there are none for the others.
 */
void mirror_drop_addresses(struct mirror *m, u64 start, u64 end, bool may_sleep)
{
	/* Linux 6.7, and no later one, announces empty ranges (PAGEMAP_SCAN). */
	if (start >= end)
		return;
	if (!may_sleep)
		drop_wide(m, 0, ULONG_MAX, false);
	else if (end - start > NARROW_RANGE)
		drop_wide(m, start, end, true);
	else
		drop_narrow(m, start, end);
}

/*
 * Drops all entries for memory of the process from a tree without vCPUs. No vCPU is left that could
 * use what a TLB has of the tree, and one that the tree gets later flushes at its first entry on
 * each CPU (second_level_migrated()), so no vCPU is kicked. May sleep.
 */
void mirror_drop_tree(struct mirror *m, struct mirror_tree *tree)
{
	u64 gpa = DUNE_GRANULE_SIZE;

	spin_lock(&m->lock);
	while (has_entries(tree)) {
		drop_next(m, tree, &gpa, 0, ULONG_MAX);
		recycle_doomed(m);
		cond_resched_lock(&m->lock);
	}
	spin_unlock(&m->lock);
}
