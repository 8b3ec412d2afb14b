// SPDX-License-Identifier: GPL-2.0-only
/*
 * Private memory of an address space (DUNE_ADD_PRIVATE). Its pages belong to no mapping of
 * the process: only the second level leads to them, from guest-physical addresses that stand
 * for no address of the process. So a guest reaches them, but nothing that the kernel does by an
 * address of the process: system calls, ptrace, /proc/PID/mem, core dumps. A guest of another
 * address space of the same process does not reach them either: the tables are linked only into
 * the top levels of their address space's vCPUs (root.c), or into its tree (mirror.c).
 *
 * Where it is:
 *  - If the second level is shared, the first entry of the top level that is not for the
 *    process's addresses leads to it (ROOT_ENTRIES). The processor's guest-physical addresses
 *    must be wide enough to reach this entry.
 *  - If it is mirrored, granule 0 is the private memory, since DUNE_MAP_GRANULE gives that
 *    granule to no address. Every processor has a granule 0.
 *
 * Nothing is taken back from a guest. So no flush and no kick is needed: a processor
 * caches no entry that is not present. All of it is freed with the address space. No vCPU
 * exists then, and what a TLB still has of it is under the tags of vCPUs that are gone. A
 * vCPU that gets such a tag, an ASID, a VPID or a root, flushes it before its first entry
 * (virt/tag.h, second_level_migrated()).
 *
 * The pages are charged to the memory cgroup of the process that adds them. They are not in
 * its RSS, by which the OOM killer chooses. So they are counted as page tables of the process:
 * the OOM killer adds these to the RSS, and /proc/PID/status shows them as VmPTE.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/gfp.h>
#include <linux/lockdep.h>
#include <linux/log2.h>
#include <linux/printk.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/suspend.h>
#include <asm/mem_encrypt.h>
#include <asm/mtrr.h>
#include <asm/pgtable.h>

#include "dune/memory/ept.h"
#include "dune/memory/private.h"
#include "dune/memory/root.h"

/* 256 MB: decision 0051 gives the reason. There is one directory, which covers 1 GB. */
#define PRIVATE_MAX	65536
static_assert(LEVEL_ENTRIES * LEVEL_ENTRIES >= PRIVATE_MAX);

u64 private_base __ro_after_init;
unsigned int private_max __ro_after_init;

/* The bits of an entry that leads to a table, and of one that leads to a page. */
static u64 table_bits __ro_after_init;
static u64 page_bits __ro_after_init;
/* The level of the table into which struct private_memory's @top is written. */
static int top_level __ro_after_init;

/*
 * The number of address spaces that have private memory; -1 while the computer hibernates. No
 * page of private memory may get into the image, as with memfd_secret().
 */
static atomic_t private_users;

static int private_pm(struct notifier_block *notifier, unsigned long event, void *unused)
{
	switch (event) {
	case PM_HIBERNATION_PREPARE:
		if (!atomic_cmpxchg(&private_users, 0, -1))
			break;
		pr_info("no hibernation: guests have private memory\n");
		return notifier_from_errno(-EBUSY);
	case PM_POST_HIBERNATION:
		atomic_cmpxchg(&private_users, -1, 0);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block private_pm_notifier = { .notifier_call = private_pm };

/*
 * @mirrored: the second level is a mirror. @address_bits: width of a guest-physical address, in
 * bits. Returns 0 or a negative errno.
 */
int __init private_init(bool mirrored, unsigned int address_bits)
{
	if (mirrored) {
		table_bits = EPT_RIGHTS | VMX_EPT_ACCESS_BIT;
		page_bits = EPT_RIGHTS | EPT_USED | VMX_EPT_IPAT_BIT |
			    MTRR_TYPE_WRBACK << VMX_EPT_MT_EPTE_SHIFT;
		top_level = 3;
	} else {
		table_bits = __sme_set(_PAGE_PRESENT | _PAGE_RW | _PAGE_USER |
				       _PAGE_ACCESSED | _PAGE_DIRTY);
		page_bits = table_bits;
		top_level = pgtable_l5_enabled() ? 5 : 4;
		private_base = (u64)ROOT_ENTRIES << level_shift(top_level);
	}
	if (!private_base || ilog2(private_base) < address_bits)
		private_max = PRIVATE_MAX;
	return register_pm_notifier(&private_pm_notifier);
}

void private_cleanup(void)
{
	unregister_pm_notifier(&private_pm_notifier);
}

/* Returns an empty private memory for the process of @mm, or NULL. */
struct private_memory *private_create(struct mm_struct *mm)
{
	struct private_memory *private = kzalloc(sizeof(*private), GFP_KERNEL_ACCOUNT);

	if (!private)
		return NULL;
	mutex_init(&private->lock);
	private->mm = mm;
	INIT_LIST_HEAD(&private->pages);
	return private;
}

/* Frees the pages on @list, which is not valid afterwards, and takes them off the count. */
static void free_pages_of(struct private_memory *private, struct list_head *list)
{
	struct page *page, *next;

	list_for_each_entry_safe(page, next, list, lru) {
		__free_page(page);
		mm_dec_nr_ptes(private->mm);
		cond_resched();
	}
}

/* Frees it with all pages; no vCPU of the address space exists any more. */
void private_destroy(struct private_memory *private)
{
	free_pages_of(private, &private->pages);
	if (private->top)
		atomic_dec(&private_users);
	kfree(private);
}

/*
 * Adds @count zeroed pages to @list, and counts them. Returns 0, -ENOMEM, or -EINTR for a fatal
 * signal; the pages that were added are then still on @list.
 */
static int alloc_pages_for(struct private_memory *private, struct list_head *list, u64 count)
{
	for (; count; count--) {
		struct page *page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);

		if (!page)
			return -ENOMEM;
		list_add_tail(&page->lru, list);
		mm_inc_nr_ptes(private->mm);
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

/* Moves the next page of @fresh to those of @private. Returns the page's address. */
static u64 *take_page(struct private_memory *private, struct list_head *fresh)
{
	struct page *page = list_first_entry(fresh, struct page, lru);

	list_move_tail(&page->lru, &private->pages);
	return page_address(page);
}

/* Makes the directory, and tables up to the level below the top, each with one entry. */
static void make_directory(struct private_memory *private, struct list_head *fresh)
{
	u64 *table = take_page(private, fresh);
	int level;

	private->directory = table;
	for (level = 3; level < top_level; level++) {
		u64 *above = take_page(private, fresh);

		*above = __pa(table) | table_bits;
		table = above;
	}
	private->top = __pa(table) | table_bits;
}

/* Maps the next page of @fresh, after a new table if the last one is full. The lock is held. */
static void map_page(struct private_memory *private, struct list_head *fresh)
{
	u64 n = private->count;
	u64 *slot, *page;

	if (!(n % LEVEL_ENTRIES)) {
		private->table = take_page(private, fresh);
		slot = &private->directory[n / LEVEL_ENTRIES];
		/* Guests may run: the table was cleared before they can reach it. */
		smp_store_release(slot, __pa(private->table) | table_bits);
	}
	page = take_page(private, fresh);
	/* The same holds for the page. */
	smp_store_release(&private->table[n % LEVEL_ENTRIES], __pa(page) | page_bits);
	/* Pairs with private_has(). */
	smp_store_release(&private->count, n + 1);
}

/* Adds @page, of which the caller keeps its own reference, to @list. */
static void share_page(struct private_memory *private, struct list_head *list, struct page *page)
{
	get_page(page);
	list_add_tail(&page->lru, list);
	mm_inc_nr_ptes(private->mm);
}

/*
 * Adds @count zeroed pages and then @shared, if it is not NULL, with the tables that they need. The
 * lock is held. All that can fail comes first, so that nothing was added if it fails. Returns 0,
 * -ENOMEM, -EBUSY or -EINTR.
 */
static int add_locked(struct private_memory *private, u64 count, struct page *shared)
{
	u64 end = private->count + count + !!shared;
	u64 tables = DIV_ROUND_UP(end, LEVEL_ENTRIES) -
		     DIV_ROUND_UP(private->count, LEVEL_ENTRIES);
	LIST_HEAD(fresh);
	int err;

	lockdep_assert_held(&private->lock);
	if (!private->top)
		tables += top_level - 2;
	err = alloc_pages_for(private, &fresh, tables + count);
	if (!err && !private->top && !atomic_inc_unless_negative(&private_users))
		err = -EBUSY;
	if (err) {
		free_pages_of(private, &fresh);
		return err;
	}
	if (shared)
		share_page(private, &fresh, shared);
	if (!private->top)
		make_directory(private, &fresh);
	while (private->count < end)
		map_page(private, &fresh);
	return 0;
}

/**
 * private_add() - add pages to the private memory of an address space
 * @private:	of the calling process
 * @count:	the number of zeroed pages
 * @shared:	another page, which gets a further reference and follows them, or NULL. No mapping
 *		uses its page.lru
 * @gpa:	returns the guest-physical address of the first one
 *
 * The pages are contiguous in guest-physical addresses, from the end of those that were added
 * before. If it fails, nothing was added.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for no page; -ENOSPC for more than private_max in all; -ENOMEM; -EBUSY
 * while the computer hibernates; -EINTR for a fatal signal.
 */
int private_add(struct private_memory *private, u64 count, struct page *shared, u64 *gpa)
{
	u64 left;
	int err;

	if (!count && !shared)
		return -EINVAL;
	if (mutex_lock_killable(&private->lock))
		return -EINTR;
	*gpa = private_base + (private->count << PAGE_SHIFT);
	left = private_max - private->count;
	err = count > left || count + !!shared > left ? -ENOSPC :
	      add_locked(private, count, shared);
	mutex_unlock(&private->lock);
	return err;
}
