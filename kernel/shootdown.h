/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TLB shootdown without interrupts of the kernel's own: shootdown.c. One for
 * each mm that has vCPUs, where that is needed.
 */
#ifndef DUNE_SHOOTDOWN_H
#define DUNE_SHOOTDOWN_H

#include <linux/atomic.h>
#include <linux/mmu_notifier.h>
#include <linux/types.h>

#include "kick.h"

struct mm_struct;

/**
 * struct shootdown - that of an mm
 * @notifier:	by which the kernel tells of a flush
 * @kicks:	the vCPUs to get out of the guest
 * @generation:	advanced before each kick: vcpu_must_flush() compares it
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

/* Does this machine need it? */
bool shootdown_is_needed(void);

/* Of an mm. Process context, may sleep. */
struct shootdown *shootdown_get(struct mm_struct *mm);
void shootdown_put(struct shootdown *shootdown);

#endif /* DUNE_SHOOTDOWN_H */
