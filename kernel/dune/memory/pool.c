// SPDX-License-Identifier: GPL-2.0-only
/*
 * A pool of pages. When a process ends, the pages that its address space has for itself go there,
 * up to a limit, and the next process of the same tree uses them: so they are not allocated,
 * charged and cleared each time. A tree has the address spaces that were copied, all copies of
 * them, and copies of these.
 *
 * The pages stay charged to the memory cgroup that has allocated them. There are two kinds:
 *  - copies of private memory (private.c), with what was in them. They leave the pool only to be
 *    overwritten as a whole, before any guest can reach them;
 *  - page tables in which all is 0, as the kernel gives them: of private memory, and of a mirror
 *    (mirror.c).
 * The copies are freed with the last private memory of the tree. A mirror may outlive all of them
 * with its tables: it lives as long as any address space of its process.
 *
 * No guest that has used a page of either kind exists any more when the page comes here, or all
 * vCPUs have flushed, exactly as before a page is freed. So a page that comes from here needs no
 * other care than one that was freed and allocated again.
 *
 * If the kernel clears what is freed (init_on_free=1), there is no pool.
 */
#include <linux/gfp.h>
#include <linux/list.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "dune/memory/pool.h"

/*
 * The most pages of each kind: as many as a child of a small program needs. Processes that end at
 * the same time may give a few tables more.
 */
#define COPIES_MAX	32
#define TABLES_MAX	16

struct page_pool *pool_create(void)
{
	struct page_pool *pool;

	if (want_init_on_free())
		return NULL;
	pool = kzalloc(sizeof(*pool), GFP_KERNEL_ACCOUNT);
	if (!pool)
		return NULL;
	kref_init(&pool->kref);
	refcount_set(&pool->users, 1);
	spin_lock_init(&pool->lock);
	INIT_LIST_HEAD(&pool->copies.pages);
	INIT_LIST_HEAD(&pool->tables.pages);
	return pool;
}

/* Returns @pool, with another reference. */
struct page_pool *pool_get(struct page_pool *pool)
{
	if (pool)
		kref_get(&pool->kref);
	return pool;
}

static void free_list(struct pool_list *list)
{
	struct page *page, *next;

	list_for_each_entry_safe(page, next, &list->pages, lru)
		__free_page(page);
}

static void free_pool(struct kref *kref)
{
	struct page_pool *pool = container_of(kref, struct page_pool, kref);

	free_list(&pool->tables);
	kfree(pool);
}

void pool_put(struct page_pool *pool)
{
	if (pool)
		kref_put(&pool->kref, free_pool);
}

/* Returns @pool, with another user. The private memory that is copied is one, and stays one. */
struct page_pool *pool_join(struct page_pool *pool)
{
	if (pool)
		refcount_inc(&pool->users);
	return pool;
}

/*
 * A user gives @pool up, after its pages. The last one frees the copies, without the lock: all
 * others have left, and none can come, since a copy is made of a user.
 */
void pool_leave(struct page_pool *pool)
{
	if (!pool || !refcount_dec_and_test(&pool->users))
		return;
	free_list(&pool->copies);
	pool_put(pool);
}

/* Moves all pages with old contents to @list. */
void pool_take_copies(struct page_pool *pool, struct list_head *list)
{
	if (!pool)
		return;
	spin_lock(&pool->lock);
	list_splice_init(&pool->copies.pages, list);
	pool->copies.count = 0;
	spin_unlock(&pool->lock);
}

/* Gives the pages on @list, which nobody else has, to the pool, or frees them. May sleep. */
void pool_give_copies(struct page_pool *pool, struct list_head *list)
{
	struct page *page, *next;
	LIST_HEAD(kept);

	if (pool) {
		spin_lock(&pool->lock);
		list_for_each_entry(page, list, lru) {
			if (pool->copies.count == COPIES_MAX)
				break;
			pool->copies.count++;
		}
		list_cut_before(&kept, list, &page->lru);
		list_splice(&kept, &pool->copies.pages);
		spin_unlock(&pool->lock);
	}
	list_for_each_entry_safe(page, next, list, lru) {
		__free_page(page);
		cond_resched();
	}
	INIT_LIST_HEAD(list);
}

/* Takes a table from the pool, or returns NULL. */
static struct page *take_table(struct page_pool *pool)
{
	struct page *page;

	spin_lock(&pool->lock);
	page = list_first_entry_or_null(&pool->tables.pages, struct page, lru);
	if (page) {
		list_del(&page->lru);
		pool->tables.count--;
	}
	spin_unlock(&pool->lock);
	return page;
}

/* Returns a cleared page, of the pool or a new one allocated with @flags, or NULL. */
struct page *pool_take_table(struct page_pool *pool, gfp_t flags)
{
	struct page *page = pool ? take_table(pool) : NULL;

	return page ?: alloc_page(flags | __GFP_ACCOUNT | __GFP_ZERO);
}

/* Returns whether pool_give_table() would keep a table now. */
bool pool_wants_table(const struct page_pool *pool)
{
	return pool && READ_ONCE(pool->tables.count) < TABLES_MAX;
}

/*
 * Gives @page, a table that is in no other and of which all but the first @entries are 0, to the
 * pool, or frees it.
 */
void pool_give_table(struct page_pool *pool, struct page *page, unsigned int entries)
{
	set_page_private(page, 0);
	if (!pool_wants_table(pool)) {
		__free_page(page);
		return;
	}
	memset(page_address(page), 0, entries * sizeof(u64));
	spin_lock(&pool->lock);
	list_add(&page->lru, &pool->tables.pages);
	pool->tables.count++;
	spin_unlock(&pool->lock);
}
