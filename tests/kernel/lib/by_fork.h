/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * For the tests of children without a host half: fork and vfork by a guest of by_alone.h
 * (DUNE_MAKE_CHILD), private memory of such a guest, and the end of its children.
 */
#ifndef DUNE_TESTS_BY_FORK_H
#define DUNE_TESTS_BY_FORK_H

#include "by_alone.h"

#define PRIVATE_ROOM	(1UL << 20)	/* what child_private_add() can add: PRIVATE_AT + 1 MB */

/* ---- called inside the guest, in ring 0 */

/* The hypercall that makes an unborn vCPU, which begins at @rip; 0 or -errno. */
long child_make(u64 kind, const void *rip);
/* The call @nr, clone, fork or vfork, by the stub, without making a vCPU: the child's pid. */
long child_clone(long nr, u64 flags);
/*
 * DUNE_MAKE_CHILD, and clone(@flags) by the stub: 0 in the child, else its pid or -errno. Both
 * calls are made again if a signal came first.
 */
long child_fork(u64 flags);
/*
 * DUNE_MAKE_SHARED_CHILD, and clone(@flags) by the stub; the child calls fn(arg) on a stack of its
 * own and ends with its result. Returns the child's pid or -errno.
 */
long child_share(u64 flags, u64 (*fn)(void *arg), void *arg);
/* In a child of child_share(): the guest-physical address of its run page. */
extern u64 child_run;

/* Ends the process. */
void child_exit(u64 status) __attribute__((noreturn));
/* Waits for @pid: its status as of waitpid(), or -errno. */
long child_wait(long pid);
/* child_wait(), as the signal that has ended @pid, or -1 if it was none. */
int child_signal(long pid);

/*
 * DUNE_ADD_PRIVATE by a privileged call. @sealed: NULL, or the contents of sealed pages. Returns
 * where the guest has the pages, or NULL.
 */
char *child_private_add(u64 pages, const void *sealed);

#endif
