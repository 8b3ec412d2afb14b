/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Child processes: their time limit, how they end, and memory that they share. */
#ifndef DUNE_TESTS_CHILD_H
#define DUNE_TESTS_CHILD_H

#include <stdbool.h>

/* The end of a child. */
struct outcome {
	bool hung;	/* did not end within its time and was killed */
	int code;	/* exit status, or -1 */
	int signal;	/* signal that ended it, or 0; not the SIGKILL after its time */
};

/* "exit status 3", "signal 11" or "killed after its time limit". Valid until the next call. */
const char *outcome_text(struct outcome o);

/* Whether @signal ended the child, or, for 0, the child exited with status 0. */
bool outcome_is(struct outcome o, int signal);

/*
 * Whether @o is an exit status with all of @bits, for a child that reports several verdicts as
 * bits 0 to 6. (bail() has bit 7.)
 */
bool outcome_has(struct outcome o, int bits);

/* fork(), which bails out on an error: kill() of -1 would end every process of the machine. */
int checked_fork(void);

/*
 * Run fn(arg) in a forked child and wait @seconds for it at most. A child
 * that does not even die of SIGKILL ends the program: the kernel is broken.
 */
struct outcome in_child(void (*fn)(void *arg), void *arg, unsigned int seconds);

/* Wait for @pid, @seconds at most. */
struct outcome wait_child(int pid, unsigned int seconds);

/* Zeroed memory that this process shares with its children. */
void *shared_alloc(unsigned long size);

#endif
