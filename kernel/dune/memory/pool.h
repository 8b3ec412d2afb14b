/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pages that a tree of processes keeps for its next process: pool.c.
 */
#ifndef DUNE_MEMORY_POOL_H
#define DUNE_MEMORY_POOL_H

#include <linux/kref.h>
#include <linux/mm.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>

/**
 * struct pool_list - pages of one kind, by page.lru
 * @pages:	the pages
 * @count:	their number
 */
struct pool_list {
	struct list_head pages;
	unsigned int count;
};

/**
 * struct page_pool - the pages of a tree of processes
 * @kref:	of mirrors and their trees, which use @tables; all users together have one more
 * @users:	private memories: those that were copied, and the copies. @copies goes with the last
 * @lock:	protects both lists; held for a few instructions
 * @copies:	pages with old contents, which the next copies of private memory overwrite
 * @tables:	cleared pages, for page tables
 */
struct page_pool {
	struct kref kref;
	refcount_t users;
	spinlock_t lock;	/* see @lock above */
	struct pool_list copies;
	struct pool_list tables;
};

/* May sleep. Returns a pool with one user, or NULL: then the caller does without. */
struct page_pool *pool_create(void);

/*
 * All that follows accepts NULL for no pool, and is for process context or a callback of the
 * kernel; only pool_give_copies() sleeps, and pool_take_table() as @flags permit.
 */
struct page_pool *pool_get(struct page_pool *pool);
void pool_put(struct page_pool *pool);
struct page_pool *pool_join(struct page_pool *pool);
void pool_leave(struct page_pool *pool);
void pool_take_copies(struct page_pool *pool, struct list_head *list);
void pool_give_copies(struct page_pool *pool, struct list_head *list);
struct page *pool_take_table(struct page_pool *pool, gfp_t flags);
bool pool_wants_table(const struct page_pool *pool);
void pool_give_table(struct page_pool *pool, struct page *page, unsigned int entries);

#endif /* DUNE_MEMORY_POOL_H */
