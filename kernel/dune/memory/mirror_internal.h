/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A mirror, as its files share it: mirror.c (its rule and its life), mirror_fill.c (how an
 * entry is made), mirror_table.c (its page tables) and mirror_notify.c (the kernel's
 * announcements).
 */
#ifndef DUNE_MEMORY_MIRROR_INTERNAL_H
#define DUNE_MEMORY_MIRROR_INTERNAL_H

#include <linux/list.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>

#include "dune/memory/ept.h"
#include "dune/memory/granule.h"
#include "dune/memory/kick.h"
#include "dune/memory/mirror.h"

/**
 * struct mirror - the mirror of one mm
 * @notifier:	announces the kernel's changes; the mm's list of notifiers leads to it
 * @granules:	the guest-physical space
 * @kicks:	the vCPUs
 * @lock:	protects what follows, and the tables of all trees. Never taken with
 *		interrupts off: its holder waits for other CPUs to answer.
 * @trees:	those that have vCPUs, KICK_VCPUS at most, in the order of their numbers
 * @last_tree:	the number of the tree that was added last
 * @populated:	the sum, over all trees, of the granules for which the tree has an entry
 * @generation:	advanced after entries have been dropped
 * @sequence:	advanced at the end of an invalidation
 * @in_progress: number of invalidations that have started and not ended
 * @start:	with @end: a range that contains all those in progress
 * @end:	the first address after that range
 * @unended:	those in progress whose end may not be announced, and which mirror_settle()
 *		ends: their number
 * @ended:	the process ends: an invalidation of all addresses is in progress and never ends
 * @doomed:	tables that are unlinked, until the vCPUs were kicked; empty when the lock is
 *		dropped
 * @spares:	empty tables
 * @nr_spares:	their number
 * @pool:	where tables come from and go to, or NULL; set once
 * @writable:	false only if no entry for memory of the process allows writing
 */
struct mirror {
	struct mmu_notifier notifier;
	struct granules granules;
	struct kick_list kicks;
	spinlock_t lock;	/* see @lock above */
	struct list_head trees;
	u64 last_tree;
	unsigned long populated;
	u64 generation;
	unsigned long sequence;
	unsigned long in_progress;
	unsigned long start;
	unsigned long end;
	unsigned long unended;
	bool ended;
	struct list_head doomed;
	struct list_head spares;
	unsigned int nr_spares;
	struct page_pool *pool;
	bool writable;
};

/**
 * struct mirror_tree - the tables of one address space
 * @lock:	held while a vCPU is added or removed
 * @vcpus:	their number
 * @link:	in mirror.trees if there are vCPUs, under mirror.lock
 * @number:	given when the tree gets its first vCPU; larger than those given before
 * @root:	of the EPT tables. A table counts its entries (ept.h).
 * @low:	the table of the first 512 GB, which always exists. Its entry 0, for granule 0,
 *		leads to the address space's private memory.
 * @pool:	where @root and @low come from and go to, or NULL
 */
struct mirror_tree {
	struct mutex lock;	/* see @lock above */
	unsigned int vcpus;
	struct list_head link;
	u64 number;
	u64 *root;
	u64 *low;
	struct page_pool *pool;
};

/**
 * struct mirror_machine - the properties of the machine, constant after mirror_init()
 * @accessed:	EPT has accessed and dirty bits
 * @split_exec:	only entries of 4 KB may be executable: an executable large page stops the
 *		whole processor (machine check, CVE-2018-12207) if the guest changes its
 *		size in its own page table without a flush
 * @max_level:	of an entry for a page: 2, or 3 if EPT has pages of 1 GB
 * @granules:	the number of granules, with granule 0
 */
struct mirror_machine {
	bool accessed;
	bool split_exec;
	int max_level;
	unsigned int granules;
};

extern struct mirror_machine mirror_machine;

/* Returns the mirror whose @notifier it is. */
static inline struct mirror *mirror_of(struct mmu_notifier *notifier)
{
	return container_of(notifier, struct mirror, notifier);
}

/* mirror.c */
struct mmu_notifier *mirror_alloc(struct mm_struct *mm);
void mirror_free(struct mmu_notifier *notifier);

/* mirror_table.c */
void mirror_set_entry(struct mirror *m, u64 *slot, int level, u64 entry);
u64 *mirror_find_slot(struct mirror *m, struct mirror_tree *tree, u64 gpa, int lowest, int *level);
void mirror_free_tables(struct mirror *m, struct list_head *list);
void mirror_flush_vcpus(struct mirror *m);
void mirror_drop(struct mirror *m, struct mirror_tree *tree, u64 start, u64 end);
void mirror_drop_tree(struct mirror *m, struct mirror_tree *tree);
void mirror_drop_addresses(struct mirror *m, u64 start, u64 end, bool may_sleep);
void mirror_protect(struct mirror *m);

/* mirror_notify.c */
extern const struct mmu_notifier_ops mirror_ops;
void mirror_settle(struct mirror *m);

#endif /* DUNE_MEMORY_MIRROR_INTERNAL_H */
