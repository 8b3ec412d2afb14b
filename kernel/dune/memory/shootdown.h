/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * TLB shootdown where the kernel sends no interrupts: shootdown.c. A struct shootdown
 * exists for each mm that has vCPUs, where that is needed.
 */
#ifndef DUNE_SHOOTDOWN_H
#define DUNE_SHOOTDOWN_H

#include <linux/types.h>

struct kick_list;
struct mm_struct;
struct shootdown;

/* The module: does this machine need it? */
bool shootdown_is_needed(void);

/* Of an mm. Process context, may sleep. */
struct shootdown *shootdown_get(struct mm_struct *mm);
void shootdown_put(struct shootdown *shootdown);
struct kick_list *shootdown_kicks(struct shootdown *shootdown);

#endif /* DUNE_SHOOTDOWN_H */
