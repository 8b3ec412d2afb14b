/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TLB shootdown on machines on which the kernel sends no interrupts for it: shootdown.c.
 * There a struct shootdown exists for each mm that has vCPUs.
 */
#ifndef DUNE_MEMORY_SHOOTDOWN_H
#define DUNE_MEMORY_SHOOTDOWN_H

#include <linux/atomic.h>
#include <linux/mmu_notifier.h>
#include <linux/types.h>

#include "dune/memory/kick.h"

struct mm_struct;

/**
 * struct shootdown - kicks the vCPUs of one mm
 * @notifier:	announces the kernel's flushes
 * @kicks:	the vCPUs, to get them out of the guest
 * @generation:	advanced before each kick; second_level_enter() compares it
 */
struct shootdown {
	struct mmu_notifier notifier;
	struct kick_list kicks;
	atomic64_t generation;
};

static inline u64 shootdown_generation(const struct shootdown *shootdown)
{
	return atomic64_read(&shootdown->generation);
}

bool shootdown_is_needed(void);
int shootdown_get(struct mm_struct *mm, struct shootdown **found);
void shootdown_put(struct shootdown *shootdown);

#endif /* DUNE_MEMORY_SHOOTDOWN_H */
