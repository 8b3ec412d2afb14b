/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For the tests of the stub (struct dune_stub): mapping it, and entering a vCPU by it. */
#ifndef DUNE_TESTS_BY_STUB_H
#define DUNE_TESTS_BY_STUB_H

#include "guest.h"

#include <signal.h>

/* The offset of the instruction after the stub's lseek(): UD2. */
#define STUB_ENTERED	7

/* How many pages stub_map() maps: 1, or more for a window after the stub. */
extern unsigned int stub_pages;
/* Where it maps them, in place of what is there; NULL: at an address of the kernel's choice. */
extern void *stub_place;

/*
 * The stub of this process: the one that it has mapped or inherited, or else one that is mapped now
 * from @g's vCPU. Bails out on an error.
 */
char *stub_map(struct guest *g);
/* Enter the vCPU @fd by @stub. Only the end of the process ends it. */
void stub_enter(const void *stub, int fd) __attribute__((noreturn));
/*
 * A handler of SIGILL for a thread that has called the stub: returns to the caller from the UD2,
 * with the result of lseek().
 */
void stub_leave(int sig, siginfo_t *info, void *context);

#endif
