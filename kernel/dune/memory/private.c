// SPDX-License-Identifier: GPL-2.0-only
/*
 * Private memory of an address space (DUNE_ADD_PRIVATE). But for the window (below), its pages
 * belong to no mapping of the process: only the second level leads to them, from guest-physical
 * addresses that stand for no address of the process. So a guest reaches them, but nothing that the
 * kernel does by an address of the process: system calls, ptrace, /proc/PID/mem, core dumps. A
 * guest of another address space of the same process does not reach them either: the tables are
 * linked only into the top levels of their address space's vCPUs (root.c), or into its tree
 * (mirror.c).
 *
 * Where it is:
 *  - If the second level is shared, the first entry of the top level that is not for the
 *    process's addresses leads to it (ROOT_ENTRIES). The processor's guest-physical addresses
 *    must be wide enough to reach this entry.
 *  - If it is mirrored, granule 0 is the private memory, since DUNE_MAP_GRANULE gives that
 *    granule to no address. Every processor has a granule 0.
 *
 * Nothing is taken back from a guest. So no flush and no kick is needed: a processor
 * caches no entry that is not present. All of it is freed with the address space, or becomes part
 * of another one (pool.c). No vCPU exists then, and what a TLB still has of it is
 * under the tags of vCPUs that are gone. A vCPU that gets such a tag, an ASID, a VPID or a root,
 * flushes it before its first entry (virt/tag.h, second_level_migrated()).
 *
 * The pages are charged to the memory cgroup of the process that adds them. They are not in
 * its RSS, by which the OOM killer chooses. So they are counted as page tables of the process:
 * the OOM killer adds these to the RSS, and /proc/PID/status shows them as VmPTE.
 *
 * A child process gets a copy (private_copy()). Sealed pages are not copied: no guest can write
 * them, so all copies share them, by reference. The other pages of an address space that is freed
 * become those of the next copy in the same tree of processes (pool.c).
 *
 * The pages of the window are in a mapping, too: the process can read them after its stub (stub.c).
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
#include "dune/memory/pool.h"
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
/*
 * In page.private of a run page that is private memory, or was that of a vCPU that is gone: the
 * other bits are its guest-physical address, which can be 0. Other pages have 0 there.
 */
#define RUN_PAGE	1
/* In an entry that leads to a page: it is not sealed. Both formats have the same bit. */
#define WRITABLE	_PAGE_RW
static_assert(WRITABLE == VMX_EPT_WRITABLE_MASK);
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
	INIT_LIST_HEAD(&private->tables);
	spin_lock_init(&private->idle_lock);
	INIT_LIST_HEAD(&private->idle);
	return private;
}

/* Returns the entry of page @n, which was added. */
static u64 entry_of(const struct private_memory *private, u64 n)
{
	const u64 *table = phys_to_virt(private->directory[n / LEVEL_ENTRIES] & PTE_PFN_MASK);

	return table[n % LEVEL_ENTRIES];
}

static struct page *page_of(u64 entry)
{
	return pfn_to_page((entry & PTE_PFN_MASK) >> PAGE_SHIFT);
}

/* Gives up a page that @private has counted. */
static void drop_page(struct private_memory *private, struct page *page)
{
	set_page_private(page, 0);
	__free_page(page);
	mm_dec_nr_ptes(private->mm);
	cond_resched();
}

/* Gives up the pages on @list, which is not valid afterwards. */
static void drop_list(struct private_memory *private, struct list_head *list)
{
	struct page *page, *next;

	list_for_each_entry_safe(page, next, list, lru)
		drop_page(private, page);
}

/*
 * Gives up page @n: adds it to @copies, for the pool, if it is a page that a copy has for itself
 * and nobody else has it. A page of the window may still be in a pipe.
 */
static void drop_entry(struct private_memory *private, u64 n, struct list_head *copies)
{
	u64 entry = entry_of(private, n);
	struct page *page = page_of(entry);

	if (!private->pool || !(entry & WRITABLE) || page_private(page) || page_count(page) != 1 ||
	    PageHWPoison(page)) {
		drop_page(private, page);
		return;
	}
	list_add(&page->lru, copies);
	mm_dec_nr_ptes(private->mm);
}

/* Returns how many entries table @n of private->tables can have: see make_directory(). */
static unsigned int entries_of(const struct private_memory *private, unsigned int n)
{
	unsigned int above = top_level - 2;

	if (!n)
		return DIV_ROUND_UP(private->count, LEVEL_ENTRIES);
	if (n < above)
		return 1;
	return min_t(u64, private->count - (n - above) * LEVEL_ENTRIES, LEVEL_ENTRIES);
}

/* Gives up all tables. */
static void drop_tables(struct private_memory *private)
{
	struct page *page, *next;
	unsigned int n = 0;

	list_for_each_entry_safe(page, next, &private->tables, lru) {
		pool_give_table(private->pool, page, entries_of(private, n++));
		mm_dec_nr_ptes(private->mm);
		cond_resched();
	}
}

/* Frees it with all pages; no vCPU of the address space exists any more. */
void private_destroy(struct private_memory *private)
{
	LIST_HEAD(copies);
	u64 n;

	for (n = 0; n < private->count; n++) {
		drop_entry(private, n, &copies);
		/* A small one, as of most children, asks nobody. */
		if (n % 256 == 255)
			cond_resched();
	}
	pool_give_copies(private->pool, &copies);
	drop_tables(private);
	/* While the pool has contents, one of its users is in private_users. */
	pool_leave(private->pool);
	if (private->top)
		atomic_dec(&private_users);
	kfree(private);
}

/*
 * Returns a new page, which is counted: with the contents at @user in the process, or zeroed if it
 * is NULL. Returns ERR_PTR(-ENOMEM), ERR_PTR(-EFAULT), or ERR_PTR(-EINTR) for a fatal signal.
 */
static struct page *new_page(struct private_memory *private, const void __user *user)
{
	struct page *page;

	if (fatal_signal_pending(current))
		return ERR_PTR(-EINTR);
	cond_resched();
	page = alloc_page(GFP_KERNEL_ACCOUNT | (user ? 0 : __GFP_ZERO));
	if (!page)
		return ERR_PTR(-ENOMEM);
	mm_inc_nr_ptes(private->mm);
	if (user && copy_from_user(page_address(page), user, PAGE_SIZE)) {
		drop_page(private, page);
		return ERR_PTR(-EFAULT);
	}
	return page;
}

/*
 * Does what copy_page() does. The kernel chooses another way than this for a processor whose
 * REP MOVS is slow, but each one that has nested paging has a fast one.
 */
static void copy_whole(void *to, const void *from)
{
	unsigned long words = PAGE_SIZE / sizeof(u64);

	asm volatile("rep movsq" : "+D" (to), "+S" (from), "+c" (words) : : "memory");
}

/*
 * Returns a page like @source, which is counted: one of @pooled if there is one, or a new one. All
 * of its contents are replaced. Returns an error as new_page().
 */
static struct page *copied_page(struct private_memory *private, const struct page *source,
				struct list_head *pooled)
{
	struct page *page = list_first_entry_or_null(pooled, struct page, lru);

	if (fatal_signal_pending(current))
		return ERR_PTR(-EINTR);
	cond_resched();
	if (page)
		list_del(&page->lru);
	else
		page = alloc_page(GFP_KERNEL_ACCOUNT);
	if (!page)
		return ERR_PTR(-ENOMEM);
	mm_inc_nr_ptes(private->mm);
	copy_whole(page_address(page), page_address(source));
	return page;
}

/*
 * Adds @count pages to @list, with the contents at @user, or zeroed if @user is NULL. Returns 0 or
 * an error of new_page(); the pages that were added are then still on @list.
 */
static int new_pages(struct private_memory *private, struct list_head *list, u64 count,
		     const void __user *user)
{
	for (; count; count--) {
		struct page *page = new_page(private, user);

		if (IS_ERR(page))
			return PTR_ERR(page);
		list_add_tail(&page->lru, list);
		if (user)
			user += PAGE_SIZE;
	}
	return 0;
}

/*
 * Adds @count empty tables to @list. Returns 0 or -ENOMEM; the tables that were added are then
 * still on @list.
 */
static int new_tables(struct private_memory *private, struct list_head *list, u64 count)
{
	for (; count; count--) {
		struct page *page = pool_take_table(private->pool, GFP_KERNEL);

		if (!page)
			return -ENOMEM;
		mm_inc_nr_ptes(private->mm);
		list_add_tail(&page->lru, list);
		cond_resched();
	}
	return 0;
}

/* Adds @run, a run page, of which the caller keeps its own reference, to @list. */
static void add_run_page(struct private_memory *private, struct list_head *list, struct page *run)
{
	get_page(run);
	list_add_tail(&run->lru, list);
	mm_inc_nr_ptes(private->mm);
}

/* Returns the number of tables that @private needs for @count more pages. */
static u64 tables_for(const struct private_memory *private, u64 count)
{
	u64 tables = DIV_ROUND_UP(private->count + count, LEVEL_ENTRIES) -
		     DIV_ROUND_UP(private->count, LEVEL_ENTRIES);

	return private->top ? tables : tables + top_level - 2;
}

/* Moves the next table of @fresh to those of @private. Returns its address. */
static u64 *take_table(struct private_memory *private, struct list_head *fresh)
{
	struct page *page = list_first_entry(fresh, struct page, lru);

	list_move_tail(&page->lru, &private->tables);
	return page_address(page);
}

/*
 * Makes the directory, and tables up to the level below the top, each with one entry, if there are
 * none yet. Returns 0, or -EBUSY while the computer hibernates.
 */
static int make_directory(struct private_memory *private, struct list_head *fresh)
{
	u64 *table;
	int level;

	if (private->top)
		return 0;
	if (!atomic_inc_unless_negative(&private_users))
		return -EBUSY;
	table = take_table(private, fresh);
	private->directory = table;
	for (level = 3; level < top_level; level++) {
		u64 *above = take_table(private, fresh);

		*above = __pa(table) | table_bits;
		table = above;
	}
	private->top = __pa(table) | table_bits;
	return 0;
}

/*
 * Maps @page, which is counted, after a table of @fresh if the last one is full. @bits: of the
 * entry. The lock is held.
 */
static void map_page(struct private_memory *private, struct list_head *fresh, struct page *page,
		     u64 bits)
{
	u64 n = private->count;
	u64 *slot;

	if (!(n % LEVEL_ENTRIES)) {
		private->table = take_table(private, fresh);
		slot = &private->directory[n / LEVEL_ENTRIES];
		/* Guests may run: the table was cleared before they can reach it. */
		smp_store_release(slot, __pa(private->table) | table_bits);
	}
	/* The same holds for the page. */
	smp_store_release(&private->table[n % LEVEL_ENTRIES], page_to_phys(page) | bits);
	/* Pairs with the acquires in private_has() and second_level_add_vcpu(). */
	smp_store_release(&private->count, n + 1);
}

/*
 * Adds the pages on @pages, which are @count, with the tables that they need. @bits: of their
 * entries. The lock is held. All that can fail comes first, so that nothing was added if it fails.
 * Returns 0, -ENOSPC, -EBUSY or an error of new_page().
 */
static int add_locked(struct private_memory *private, struct list_head *pages, u64 count, u64 bits)
{
	struct page *page, *next;
	LIST_HEAD(tables);
	int err;

	lockdep_assert_held(&private->lock);
	if (count > private_max - private->count)
		return -ENOSPC;
	err = new_tables(private, &tables, tables_for(private, count));
	err = err ?: make_directory(private, &tables);
	if (err) {
		drop_list(private, &tables);
		return err;
	}
	list_for_each_entry_safe(page, next, pages, lru)
		map_page(private, &tables, page, bits);
	return 0;
}

/* Adds @pages, as private_add(). The lock is held. */
static int add_what(struct private_memory *private, const struct private_pages *what,
		    struct list_head *pages, u64 *gpa)
{
	u64 first = private->count;
	int err;

	if (what->shown && private->shown)
		return -EEXIST;
	err = add_locked(private, pages, what->count + !!what->run_page,
			 what->sealed ? page_bits & ~WRITABLE : page_bits);
	if (err)
		return err;
	*gpa = private_base + (first << PAGE_SHIFT);
	if (what->run_page)
		set_page_private(what->run_page, (*gpa + (what->count << PAGE_SHIFT)) | RUN_PAGE);
	if (what->shown) {
		private->window = first;
		/* Pairs with private_shown(). */
		smp_store_release(&private->shown, what->count);
	}
	return 0;
}

/**
 * private_add() - add pages to the private memory of an address space
 * @private:	of the calling process
 * @what:	the pages
 * @gpa:	returns the guest-physical address of the first one; undefined if it fails
 *
 * The pages are contiguous in guest-physical addresses, from the end of those that were added
 * before. If it fails, nothing was added. The lock is not held while the process's memory is read:
 * that may take as long as the server of a FUSE file wants.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for no page; -ENOSPC for more than private_max in all; -EEXIST for a second
 * window; -ENOMEM; -EBUSY while the computer hibernates; -EINTR for a fatal signal; -EFAULT.
 */
int private_add(struct private_memory *private, const struct private_pages *what, u64 *gpa)
{
	LIST_HEAD(pages);
	int err;

	if (!what->count && !what->run_page)
		return -EINVAL;
	/* add_locked() decides; this saves the work. */
	if (what->count > private_max - READ_ONCE(private->count))
		return -ENOSPC;
	err = new_pages(private, &pages, what->count, what->contents);
	if (!err && what->run_page)
		add_run_page(private, &pages, what->run_page);
	if (!err)
		err = mutex_lock_killable(&private->lock);
	if (!err) {
		err = add_what(private, what, &pages, gpa);
		mutex_unlock(&private->lock);
	}
	if (err)
		drop_list(private, &pages);
	return err;
}

/*
 * Returns page @n of the window, or NULL. The caller has a reference to the address space. For any
 * context.
 */
struct page *private_shown(const struct private_memory *private, u64 n)
{
	/* Pairs with add_what(): the entries and @window are valid. */
	if (n >= smp_load_acquire(&private->shown))
		return NULL;
	return page_of(entry_of(private, private->window + n));
}

/*
 * Returns the page of @to for the page of @from to which @entry leads, counted, or an error of
 * new_page(). A run page other than @from_run is of no vCPU in @to, and waits there to be used.
 * @pooled: pages for copies.
 */
static struct page *copy_of(struct private_memory *to, u64 entry, const struct page *from_run,
			    struct page *run, struct list_head *pooled)
{
	struct page *page = page_of(entry), *idle;

	if (page == from_run) {
		page = run;
	} else if (page_private(page)) {
		idle = new_page(to, NULL);
		if (!IS_ERR(idle)) {
			set_page_private(idle, page_private(page));
			list_add(&idle->lru, &to->idle);
		}
		return idle;
	} else if (entry & WRITABLE) {
		return copied_page(to, page, pooled);
	}
	get_page(page);
	mm_inc_nr_ptes(to->mm);
	return page;
}

/*
 * Adds to @to, which is empty, what @from has: sealed pages by reference, others as copies, and
 * @run in the place of @from_run. The lock of @from is held. Returns 0, -EBUSY or an error of
 * new_page(), after which some pages were added.
 */
static int copy_locked(struct private_memory *to, struct private_memory *from,
		       const struct page *from_run, struct page *run)
{
	LIST_HEAD(tables);
	LIST_HEAD(pooled);
	int err;
	u64 n;

	lockdep_assert_held(&from->lock);
	from->pool = from->pool ?: pool_create();
	to->pool = pool_join(from->pool);
	err = new_tables(to, &tables, tables_for(to, from->count));
	err = err ?: make_directory(to, &tables);
	pool_take_copies(to->pool, &pooled);
	for (n = 0; n < from->count && !err; n++) {
		u64 entry = entry_of(from, n);
		struct page *page = copy_of(to, entry, from_run, run, &pooled);

		err = PTR_ERR_OR_ZERO(page);
		if (err)
			break;
		map_page(to, &tables, page, entry & WRITABLE ? page_bits : page_bits & ~WRITABLE);
	}
	pool_give_copies(to->pool, &pooled);
	drop_list(to, &tables);
	to->window = from->window;
	to->shown = from->shown;
	return err;
}

/**
 * private_copy() - make a copy for an address space that no guest uses yet
 * @from:	of the calling process, with pages
 * @from_run:	the run page of the vCPU that has the copy made
 * @run:	the run page that takes its place, if @from has it
 *
 * The pages are counted for the calling process until private_move(). Other guests that write
 * pages of @from meanwhile may have some of their writes in the copy, and others not.
 *
 * Context: process, may sleep.
 * Return: the copy, or an ERR_PTR() of -ENOMEM, -EBUSY, or -EINTR for a fatal signal.
 */
struct private_memory *private_copy(struct private_memory *from, const struct page *from_run,
				    struct page *run)
{
	struct private_memory *to = private_create(current->mm);
	int err = -EINTR;

	if (!to)
		return ERR_PTR(-ENOMEM);
	if (!mutex_lock_killable(&from->lock)) {
		err = copy_locked(to, from, from_run, run);
		mutex_unlock(&from->lock);
	}
	if (err) {
		private_destroy(to);
		return ERR_PTR(err);
	}
	set_page_private(run, page_private(from_run));
	return to;
}

/* Counts the pages for @mm from now on. No guest uses them yet. */
void private_move(struct private_memory *private, struct mm_struct *mm)
{
	u64 pages = private->count + DIV_ROUND_UP(private->count, LEVEL_ENTRIES) + top_level - 2;
	long bytes = pages * PTRS_PER_PTE * sizeof(pte_t);

	/* As mm_inc_nr_ptes(), for all of them. */
	atomic_long_sub(bytes, &private->mm->pgtables_bytes);
	atomic_long_add(bytes, &mm->pgtables_bytes);
	private->mm = mm;
}

/* Returns whether a guest may access a page that exists, or write to it. For any context. */
bool private_permits(const struct private_memory *private, u64 gpa, bool write)
{
	return !write || entry_of(private, (gpa - private_base) >> PAGE_SHIFT) & WRITABLE;
}

/* Returns the guest-physical address of a run page that is private memory. For any context. */
u64 private_run_gpa(const struct page *run)
{
	return page_private(run) & PAGE_MASK;
}

/*
 * The vCPU with the run page @run is gone. If @run is private memory, it stays where it is, for
 * another vCPU of the address space (private_take_run()). Does not sleep: the end of a vCPU must
 * not wait for another process, which holds @private->lock while it copies.
 */
void private_leave_run(struct private_memory *private, struct page *run)
{
	if (!page_private(run))
		return;
	spin_lock(&private->idle_lock);
	list_add(&run->lru, &private->idle);
	spin_unlock(&private->idle_lock);
}

/*
 * Returns a cleared run page that was left, with a reference for the caller, or NULL. May sleep.
 */
struct page *private_take_run(struct private_memory *private)
{
	struct page *page;

	spin_lock(&private->idle_lock);
	page = list_first_entry_or_null(&private->idle, struct page, lru);
	if (page) {
		list_del(&page->lru);
		get_page(page);
	}
	spin_unlock(&private->idle_lock);
	if (page)
		clear_page(page_address(page));
	return page;
}
