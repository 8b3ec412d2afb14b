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
 * @root:	of the EPT tables. A table counts its entries in page_private().
 * @lock:	protects what follows, and the tables. Never taken with interrupts off:
 *		its holder waits for other CPUs to answer.
 * @generation:	advanced after entries have been dropped
 * @sequence:	advanced at the end of an invalidation
 * @in_progress: number of invalidations that have started and not ended
 * @start:	with @end: a range that contains all those in progress
 * @end:	the first address after that range
 * @doomed:	tables that are empty and unlinked, until the vCPUs were kicked
 * @spares:	empty tables
 * @nr_spares:	their number
 */
struct mirror {
	struct mmu_notifier notifier;
	struct granules granules;
	struct kick_list kicks;
	u64 *root;
	spinlock_t lock;	/* of all below */
	u64 generation;
	unsigned long sequence;
	unsigned long in_progress;
	unsigned long start;
	unsigned long end;
	struct list_head doomed;
	struct list_head spares;
	unsigned int nr_spares;
};

/*
 * The machine, constant after mirror_init(). split_exec: on some processors an
 * executable large page stops the whole processor (machine check, CVE-2018-12207)
 * if the guest changes its size in its own page table without a flush. There only
 * entries of 4 KB are executable.
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
u64 *mirror_find_slot(struct mirror *m, u64 gpa, int lowest, int *level);
void mirror_free_tables(struct list_head *list);
void mirror_flush_vcpus(struct mirror *m);
void mirror_drop(struct mirror *m, u64 start, u64 end);
void mirror_drop_addresses(struct mirror *m, u64 start, u64 end, bool may_sleep);

/* mirror_notify.c */
extern const struct mmu_notifier_ops mirror_ops;

#endif /* DUNE_MEMORY_MIRROR_INTERNAL_H */
