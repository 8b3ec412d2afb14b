/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A child that is being made: what process.c and child.S share. */
#ifndef LIBDUNE_CHILD_H
#define LIBDUNE_CHILD_H

#define CHILD_NR	0
#define CHILD_ARGS	8
#define CHILD_AGAIN	40

#ifndef __ASSEMBLER__
#include "alone.h"

struct dune_child {
	u64 nr, args[4];		/* the call that makes it */
	u64 again;			/* a signal came before that call */
	u64 mark;			/* of copies, before them */
	struct dune_clone *c;
	/* of one that shares memory */
	struct dune_run *run;
	u64 old_counters[DUNE_COUNT_MAX];
	struct dune_sighand sighand;
};

CHECK_OFFSET(struct dune_child, nr, CHILD_NR);
CHECK_OFFSET(struct dune_child, args, CHILD_ARGS);
CHECK_OFFSET(struct dune_child, again, CHILD_AGAIN);

struct dune_tf *dune_child_copied(struct dune_child *child);
void dune_child_shared(struct dune_child *child, u64 run, struct dune_tf *tf);
#endif

#endif /* LIBDUNE_CHILD_H */
