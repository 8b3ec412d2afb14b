/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Private memory: pages that only the guests of one address space of /dev/dune can reach.
 * private.c describes it.
 */
#ifndef DUNE_MEMORY_PRIVATE_H
#define DUNE_MEMORY_PRIVATE_H

#include <linux/compiler.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/types.h>

struct page_pool;

/**
 * struct private_pages - pages to be added to private memory
 * @count:	how many
 * @contents:	of them, in memory of the process; NULL: they are zeroed
 * @sealed:	no guest can write them
 * @shown:	they are the window
 * @run_page:	a run page, which gets a further reference and follows them, or NULL. Nobody else
 *		uses its page.lru and page.private
 */
struct private_pages {
	u64 count;
	const void __user *contents;
	bool sealed;
	bool shown;
	struct page *run_page;
};

/**
 * struct private_memory - the private memory of one address space
 * @lock:	held while pages are added; protects all but @mm and @idle
 * @mm:		of the address space, which holds a reference
 * @tables:	all tables, by page.lru
 * @idle_lock:	held for a few instructions; protects @idle alone
 * @idle:	pages that were run pages of vCPUs that are gone, by page.lru
 * @top:	the entry that leads to the tables; 0 until there are pages. For the top level of
 *		a vCPU (root.h), or for the table @low of a struct mirror_tree
 * @directory:	the table of level 2, with an entry for each 2 MB
 * @table:	the table of level 1 that was added last
 * @count:	pages that were added
 * @shown:	pages of the window; 0: there is none
 * @window:	the number of its first page
 * @pool:	where the pages of copies and their tables come from and go to; NULL without copies
 *
 * All that was added stays until private_destroy(). So @top and @count can be read without the
 * lock, @count first, and so can @window, after @shown.
 */
struct private_memory {
	struct mutex lock;	/* see @lock above */
	struct mm_struct *mm;
	struct list_head tables;
	spinlock_t idle_lock;	/* see @idle_lock above */
	struct list_head idle;
	u64 top;
	u64 *directory;
	u64 *table;
	u64 count;
	u64 shown;
	u64 window;
	struct page_pool *pool;
};

/* Set by private_init(): the first guest-physical address, and the number of pages at most. */
extern u64 private_base;
extern unsigned int private_max;

/* private_init() is called at load, and private_cleanup() before the module is unloaded. */
int private_init(bool mirrored, unsigned int address_bits);
void private_cleanup(void);

/* For process context; may sleep. */
struct private_memory *private_create(struct mm_struct *mm);
void private_destroy(struct private_memory *private);
int private_add(struct private_memory *private, const struct private_pages *what, u64 *gpa);
struct page *private_shown(const struct private_memory *private, u64 n);
struct private_memory *private_copy(struct private_memory *from, const struct page *from_run,
				    struct page *run);
void private_move(struct private_memory *private, struct mm_struct *mm);
bool private_permits(const struct private_memory *private, u64 gpa, bool write);
u64 private_run_gpa(const struct page *run);
void private_leave_run(struct private_memory *private, struct page *run);
struct page *private_take_run(struct private_memory *private);

/* Returns whether a guest-physical address is that of a page. For any context. */
static inline bool private_has(const struct private_memory *private, u64 gpa)
{
	/* Pairs with map_page(): after this @top is valid. */
	return gpa - private_base < smp_load_acquire(&private->count) << PAGE_SHIFT;
}

#endif /* DUNE_MEMORY_PRIVATE_H */
