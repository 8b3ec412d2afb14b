/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The automaton of a CPU: in K, or in M within an activation. Only its own CPU steps it, in the
 * handler of an exit.
 *
 * It keeps account of flushes. A CPU "owes" a flush of a tag from the moment when the tag may
 * have entries that are no longer true: for both tags, when a view has changed; for the tag of
 * M also whenever the CPU is in K, because the kernel's own invalidations reach the tag of K
 * only. No debt may be left when the tag is used (cpu_is_square()).
 */
#ifndef GUARD_BORDER_CPU_H
#define GUARD_BORDER_CPU_H

#include "guard/hv/border/actions.h"

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

enum cpu_event_kind {
	CPU_ENTER,		/* a border-in: all fields */
	CPU_LEAVE,		/* a border-out: @class and @crossing */
	CPU_VIEWS_CHANGED,	/* a view has changed since the last exit on this CPU */
	CPU_FLUSH,		/* in K: flush all, in order to acknowledge */
};

struct cpu_event {
	u8 kind;
	u8 class;
	u8 crossing;
	u8 activation;
	u8 was_dead;	/* a border-in call: the activation was not free, but dead */
	u32 privileges;
	u32 fixup;	/* NO_FIXUP, or the fixup by which a border-in rti resumes */
};

struct border_cpu cpu_step(struct border_cpu old, const struct cpu_event *event,
			   struct border_actions *actions);

/* Returns whether the CPU may continue in the guest: an assertion before each entry. */
static inline int cpu_is_square(const struct border_cpu *cpu)
{
	return !(cpu->owes & (cpu->view == VIEW_M ? OWES_M : OWES_K));
}

#endif /* GUARD_BORDER_CPU_H */
