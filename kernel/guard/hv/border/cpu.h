/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of a CPU: in K, or in M within an activation. Only its own CPU steps it, in the handler
 * of an exit (cpu_step.h).
 *
 * It keeps account of flushes. A CPU "owes" a flush of a tag from the moment when the tag may
 * have entries that are no longer true: for both tags, when a view has changed; for the tag of
 * M also whenever the CPU is in K, because the kernel's own invalidations reach the tag of K
 * only. No debt may be left when the tag is used (cpu_is_square()).
 */
#ifndef GUARD_BORDER_CPU_H
#define GUARD_BORDER_CPU_H

#include "guard/hv/border/types.h"

enum border_view {
	VIEW_K,
	VIEW_M,
};

#define OWES_K	1
#define OWES_M	2

struct border_cpu {
	u8 view;
	u8 owes;
	u8 activation;	/* in M */
	u32 raised;	/* the privileges that are raised now */
};

/* Returns whether the CPU may continue in the guest: an assertion before each entry. */
static inline int cpu_is_square(const struct border_cpu *cpu)
{
	return !(cpu->owes & (cpu->view == VIEW_M ? OWES_M : OWES_K));
}

/* A view has changed since the last exit on this CPU. */
static inline void cpu_views_changed(struct border_cpu *cpu)
{
	cpu->owes = OWES_K | OWES_M;
}

#endif /* GUARD_BORDER_CPU_H */
