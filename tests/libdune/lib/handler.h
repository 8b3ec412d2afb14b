/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A signal handler that notes what it sees. */
#ifndef DUNE_TESTS_HANDLER_H
#define DUNE_TESTS_HANDLER_H

#include <signal.h>
#include <sys/ucontext.h>

/* The signals that note() has seen since handled_clear(). */
extern struct handled {
	volatile int count;
	volatile int order[16], orders;	/* the signals in their order, and how many */
	siginfo_t info;			/* of the last signal */
	ucontext_t uc;
	sigset_t mask;			/* in the handler */
} handled;

void handled_clear(void);
void note(int sig, siginfo_t *info, void *uc);

/* Make @fn the handler of @sig. @also_block is blocked while it runs; 0: no other signal is. */
void handle(int sig, void (*fn)(int, siginfo_t *, void *), int flags, int also_block);

#endif
