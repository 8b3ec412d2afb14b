// SPDX-License-Identifier: GPL-2.0-only
/*
 * Making the entry of an address in a mirror. See mirror.c for the rule.
 */
#include <linux/lockdep.h>
#include <linux/mm.h>
#include <asm/pgtable.h>

#include "dune/memory/mirror_internal.h"
#include "dune/memory/pool.h"
#include "dune/memory/walk.h"

/* The most tables that one fill may need. */
#define SPARES_MAX	(EPT_ROOT_LEVEL - 1)

/* Adds an empty table to the spare ones. The lock is held. */
static void add_spare(struct mirror *m, struct page *page)
{
	lockdep_assert_held(&m->lock);
	set_page_private(page, 0);
	list_add(&page->lru, &m->spares);
	m->nr_spares++;
}

/*
 * Allocates spare tables until there are @needed; a fill of another thread may take them first. The
 * lock is not held; may sleep. Returns 0 or -ENOMEM.
 */
static int get_spares(struct mirror *m, unsigned int needed)
{
	while (READ_ONCE(m->nr_spares) < needed) {
		struct page *page = pool_take_table(m->pool, GFP_KERNEL);

		if (!page)
			return -ENOMEM;
		spin_lock(&m->lock);
		add_spare(m, page);
		spin_unlock(&m->lock);
	}
	return 0;
}

/*
 * Does what get_spares() does, but does not sleep: the lock is held. So it fails where memory would
 * have to be reclaimed first. Returns whether there are @needed spare tables.
 */
static bool get_spares_now(struct mirror *m, unsigned int needed)
{
	while (m->nr_spares < needed) {
		struct page *page = pool_take_table(m->pool, GFP_NOWAIT | __GFP_NOWARN);

		if (!page)
			return false;
		add_spare(m, page);
	}
	return true;
}

/* Returns an empty table. The lock is held, and there is a spare. */
static u64 *take_spare(struct mirror *m)
{
	struct page *page = list_first_entry(&m->spares, struct page, lru);

	lockdep_assert_held(&m->lock);
	list_del(&page->lru);
	m->nr_spares--;
	return page_address(page);
}

/*
 * Returns the level of the entry for @gpa: that of the process's page, or a lower one if the
 * processor has no entries so large, or must not have an executable one (split_exec). The lock is
 * held.
 */
static int entry_level(struct mirror *m, struct mirror_tree *tree, u64 gpa,
		       const struct leaf *leaf, u32 flags)
{
	int level = min(leaf->level, mirror_machine.max_level);
	int at;

	if (!mirror_machine.split_exec)
		return level;
	if (flags & DUNE_FAULT_EXEC)
		return 1;
	/* A page that was split for execution stays split. */
	for (; level > 1; level--) {
		u64 entry = *mirror_find_slot(m, tree, gpa, level, &at);

		if (!entry || level_is_leaf(entry, at))
			break;
	}
	return level;
}

/*
 * Returns an entry in EPT's format for @address. @rights: walk_rights() of the leaf. @level: the
 * leaf's or a lower one.
 */
static u64 make_entry(const struct leaf *leaf, u64 rights, u64 address, int level)
{
	u64 mask = level_span(leaf->level) - 1;
	u64 frame = (leaf->entry & PTE_PFN_MASK & ~mask) | (address & mask);
	u64 entry = (frame & ~(level_span(level) - 1)) | VMX_EPT_IPAT_BIT | EPT_USED |
		    rights;

	if (level == 1)
		return entry;
	if (mirror_machine.split_exec)
		entry &= ~VMX_EPT_EXECUTABLE_MASK;
	return entry | LEVEL_LARGE;
}

/*
 * Returns whether rights can be added to @old, which is for the same page as @entry. If @old
 * is for another page, a notifier call was missed, which is a bug: warn, and let the
 * caller drop @old.
 */
static bool may_extend(u64 old, u64 entry)
{
	return !WARN_ON_ONCE((old ^ entry) & ~(EPT_RIGHTS | EPT_USED));
}

/*
 * Puts @entry into its slot, and returns the slot, or NULL if there are fewer spare tables than it
 * needs; @needed returns their number. The lock is held. A table or a page of another size in the
 * way is dropped, so that all vCPUs flush, before its place is used: a TLB must never have a page
 * in two sizes. The drop may unlink the tables above as well.
 *
 * A right that the old entry has is kept: if the process had lost it, the entry would
 * have been dropped. The process may have got it after our walk, which no notifier
 * announces, and another vCPU has seen it.
 */
static u64 *install(struct mirror *m, struct mirror_tree *tree, u64 gpa, int level, u64 entry,
		    unsigned int *needed)
{
	int at;
	u64 *slot = mirror_find_slot(m, tree, gpa, level, &at);
	bool extends = *slot && at == level && level_is_leaf(*slot, level) &&
		       may_extend(*slot, entry);

	lockdep_assert_held(&m->lock);
	*needed = extends ? 0 : *slot ? SPARES_MAX : at - level;
	if (!get_spares_now(m, *needed))
		return NULL;
	if (extends) {
		entry |= *slot & EPT_RIGHTS;
	} else if (*slot) {
		u64 start = gpa & ~(level_span(level) - 1);

		mirror_drop(m, tree, start, start + level_span(level));
		slot = mirror_find_slot(m, tree, gpa, level, &at);
	}
	for (; at > level; at--) {
		u64 *table = take_spare(m);

		mirror_set_entry(m, slot, at, __pa(table) | EPT_RIGHTS | VMX_EPT_ACCESS_BIT);
		slot = level_slot(table, gpa, at - 1);
	}
	mirror_set_entry(m, slot, level, entry);
	m->writable |= !!(entry & VMX_EPT_WRITABLE_MASK);
	return slot;
}

/*
 * Adds the entries of @around next to @slot; those that exist already are left as they are. The
 * lock is held.
 */
static void install_around(struct mirror *m, u64 *slot, const u64 *around)
{
	u64 *first = PTR_ALIGN_DOWN(slot, WALK_AROUND * sizeof(u64));
	unsigned int i, added = 0;
	u64 rights = 0;

	lockdep_assert_held(&m->lock);
	for (i = 0; i < WALK_AROUND; i++) {
		if (!around[i] || first[i])
			continue;
		WRITE_ONCE(first[i], around[i]);
		rights |= around[i];
		added++;
	}
	ept_count_entries(first, added);
	m->writable |= !!(rights & VMX_EPT_WRITABLE_MASK);
}

/*
 * Returns whether the kernel has taken anything back since @sequence was read, or is doing so
 * now in the @size bytes around @address. The lock is held.
 */
static bool is_outdated(const struct mirror *m, unsigned long sequence, u64 address, u64 size)
{
	u64 start = address & ~(size - 1);

	lockdep_assert_held(&m->lock);
	if (m->sequence != sequence)
		return true;
	return m->in_progress && m->start < start + size && m->end > start;
}

/* Returns the rights in EPT's format that an access needs. @flags: DUNE_FAULT_*. */
static u64 rights_for(u32 flags)
{
	return VMX_EPT_READABLE_MASK |
	       (flags & DUNE_FAULT_WRITE ? VMX_EPT_WRITABLE_MASK : 0) |
	       (flags & DUNE_FAULT_EXEC ? VMX_EPT_EXECUTABLE_MASK : 0);
}

/*
 * Does what mirror_fill() does, for @gpa of @address, once, with the spare tables that there are.
 * Returns 0 or -EFAULT as mirror_fill(), or the number of spare tables that it needs, and then the
 * entry was not made.
 */
static int try_fill(struct mirror *m, struct mirror_tree *tree, u64 gpa, u64 address, u32 flags,
		    bool around)
{
	unsigned int needed = 0;
	unsigned long sequence;
	u64 near[WALK_AROUND];
	struct leaf leaf;
	u64 *slot = NULL;
	u64 rights = 0;
	bool permitted;
	int level;

	if (unlikely(READ_ONCE(m->unended)))
		mirror_settle(m);
	/* The sequence is read before the walk; pairs with the release in end_invalidations(). */
	sequence = smp_load_acquire(&m->sequence);
	local_irq_disable();
	if (walk_page_table(m->notifier.mm, address, &leaf))
		rights = walk_rights(leaf.entry, leaf.level, leaf.denied);
	permitted = !(rights_for(flags) & ~rights);
	around &= permitted && leaf.level == 1;
	if (around)
		walk_around(&leaf, near);
	local_irq_enable();
	if (!permitted)
		return -EFAULT;
	spin_lock(&m->lock);
	level = entry_level(m, tree, gpa, &leaf, flags);
	if (!is_outdated(m, sequence, address, level_span(level)))
		slot = install(m, tree, gpa, level, make_entry(&leaf, rights, address, level),
			       &needed);
	if (slot) {
		needed = 0;
		if (around && !is_outdated(m, sequence, address, WALK_AROUND * PAGE_SIZE))
			install_around(m, slot, near);
	}
	spin_unlock(&m->lock);
	return needed;
}

/**
 * mirror_fill() - make the entry for an address
 * @m:		the mirror of current->mm
 * @tree:	that of the vCPU's address space
 * @gpa:	guest-physical, in a granule that has an address
 * @address:	mirror_address() of it
 * @flags:	DUNE_FAULT_WRITE and _EXEC: what the guest wants to do there
 * @around:	make the entries of pages around it as well
 *
 * At most faults the process has the page already, so this is called first. Only if
 * it fails is the process's fault handler called, and then this again.
 *
 * Most fills need no table, and most others get theirs at once (get_spares_now()). The rest
 * allocate them without the lock, and then begin again, since the kernel may have taken something
 * back meanwhile.
 *
 * Context: process, interrupts on, may sleep.
 * Return: 0 to enter the guest again: the entry was made, or the fault comes again, because
 * the kernel has taken something back meanwhile. -EFAULT: the process's page table does not allow
 * the access. -ENOMEM: no memory for tables.
 */
int mirror_fill(struct mirror *m, struct mirror_tree *tree, u64 gpa, u64 address, u32 flags,
		bool around)
{
	int err, needed;

	if (address >= TASK_SIZE_MAX)
		return -EFAULT;
	while ((needed = try_fill(m, tree, gpa, address, flags, around)) > 0) {
		err = get_spares(m, needed);
		if (err)
			return err;
	}
	return needed;
}
