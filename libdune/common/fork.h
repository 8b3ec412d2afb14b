/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What both ways of making a child share (host/process.c, alone/process.c). */
#ifndef LIBDUNE_FORK_H
#define LIBDUNE_FORK_H

#include "thread.h"

/* A child that @make_child of services.h is to make, with a host half or without one. */
struct dune_clone {
	struct dune_tf *tf;	/* the caller; the child starts with its copy */
	long nr;		/* clone or clone3 to call, with: */
	u64 flags;		/* without CLONE_SETTLS */
	u64 args_size;		/* clone3: bytes used of args */
	struct kclone_args args;
	u64 child_rsp;		/* 0: the caller's */
	u64 fs_base;		/* of the child */
};

/* Takes all locks that a child of @t will use (lock.h): no other thread changes their data. */
void dune_fork_lock(struct dune_thread *t);

/* Releases them, in the parent and in a child that has a copy of the memory. */
void dune_fork_unlock(struct dune_thread *t);

/* In that child, whose one thread is @t, afterwards: begins its list of threads and counters. */
void dune_fork_begin(struct dune_thread *t);

/*
 * Releases the locks that @child held when it was killed. It shared memory with @t and is gone; so
 * no other thread changes the data of these locks meanwhile. @child is @t if it had the same block.
 */
void dune_fork_release(const struct dune_thread *child, struct dune_thread *t);

/* Prints once that threads are not supported. */
void dune_fork_no_threads(void);

#endif /* LIBDUNE_FORK_H */
