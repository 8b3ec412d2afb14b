/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the guest half asks of the host half: hypercalls with the upper half
 * of RAX set. host/loop.c answers them.
 *
 * DUNE_HOSTCALL | number of a system call: that call, by the host half.
 */
#ifndef LIBDUNE_HYPERCALL_H
#define LIBDUNE_HYPERCALL_H

#include <linux/dune.h>
#include "dune_runtime.h"
#include "linux.h"

#define HC_SYSCALL(nr)	(DUNE_HOSTCALL | (nr))

/* Run again; which raises the signal interrupt, if signals are queued. */
#define HC_NOP		(2 * DUNE_HOSTCALL)
/* Die by signal rdi with its default action, core dump and all. */
#define HC_DIE		(3 * DUNE_HOSTCALL)
/* A stack in ring 0 that cannot be used: say so, then as HC_DIE. */
#define HC_BAD_STACK	(4 * DUNE_HOSTCALL)
/* A process, by struct dune_clone in rdi; result as of clone(). */
#define HC_CLONE	(5 * DUNE_HOSTCALL)
/* clone() asked for a thread: say once that there are none yet. */
#define HC_NO_THREADS	(6 * DUNE_HOSTCALL)
/* No granule for address rdi: say so and die, or return if nothing is there. */
#define HC_NO_GRANULE	(7 * DUNE_HOSTCALL)
/* The same for a page of the arena that the page table needs there. */
#define HC_NO_PAGES	(8 * DUNE_HOSTCALL)

struct dune_clone {
	struct dune_tf *tf;	/* the caller; the child starts with its copy */
	long nr;		/* clone or clone3 to call, with: */
	u64 flags;		/* without CLONE_SETTLS */
	u64 args_size;		/* clone3: bytes used of args */
	struct kclone_args args;
	u64 child_rsp;		/* 0: the caller's */
	u64 fs_base;		/* of the child */
};

/* hypercall.c: addresses in the code that has the vendor's hypercalls */
struct dune_calls {
	const char *lstar, *lstar_call, *lstar_popf, *lstar_end;
	const char *forward_call, *forward_tf_call;
};

extern const struct dune_calls *dune_calls;
int dune_calls_choose(u32 vendor);

#endif /* LIBDUNE_HYPERCALL_H */
