/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The hidden descriptors: dune-run's descriptors, which the program must not see. */
#ifndef DUNE_RUN_HIDDEN_H
#define DUNE_RUN_HIDDEN_H

#include "types.h"

/* They have numbers from DUNE_HIGH_FD on, while RLIMIT_NOFILE permits. */
enum hidden {
	HIDDEN_SELF,	/* dune-run's file, for execve */
	HIDDEN_STATS,	/* the counters of --stats */
	HIDDEN_REPORT,	/* where their report goes */
	HIDDEN_VCPU,	/* libdune keeps its number */
	HIDDEN_COUNT
};

/* The numbers of a process's hidden descriptors, without the vCPU's, which libdune keeps. */
struct hidden_table {
	int hidden[HIDDEN_VCPU];	/* -1: none */
};

/*
 * Hide @fd, which is not the vCPU's. It keeps its number if that is DUNE_HIGH_FD or above
 * (after execve). Otherwise it moves there, or to a lower number where RLIMIT_NOFILE is lower;
 * it stays only if no number is free. Returns its number.
 */
long hidden_add(enum hidden which, int fd);
/* The number of the descriptor, or -1 if there is none. */
int hidden_fd(enum hidden which);
/* Whether the program must get EBADF for @fd, of which the low 32 bits count, as for the kernel. */
bool is_hidden(u64 fd);
/*
 * The program wants number @fd for itself: move a hidden descriptor away from it.
 * Returns whether the number is free of one.
 */
bool hidden_make_way(int fd);
/*
 * Save the numbers of hidden descriptors before a vfork child runs, and restore them when
 * it has ended. The parent is suspended in between, so the child alone changes them.
 */
void hidden_save(struct hidden_table *to);
void hidden_restore(const struct hidden_table *from);

#endif /* DUNE_RUN_HIDDEN_H */
