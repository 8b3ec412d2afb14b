/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Running parts of a test in ring 0 and in ring 3 of a guest. A test program
 * with one body for all (in_all_rings()) takes "native" as its argument: then
 * the body runs without Dune, which tests the test.
 */
#ifndef DUNE_TESTS_RINGS_H
#define DUNE_TESTS_RINGS_H

#include "x86.h"

#include <dune.h>

/* Handlers without DUNE_TRAP_FPU, and all that they call. */
#define GPR_ONLY __attribute__((target("general-regs-only")))

/* The ring in which the caller runs. */
static inline int ring(void)
{
	unsigned short cs;

	__asm__ volatile("mov %%cs, %0" : "=r" (cs));
	return cs & 3;
}

/* dune_enter(), without which there is nothing to test. NULL: the default. */
void must_enter(const struct dune_config *cfg);

/* The system call, unknown to Linux, by which ring 3 ends: its value is in RDI. */
#define NR_LEAVE 0xd00d

/* For assembly in strings. */
#define SYSCALL(nr) "movl $" ASM_NUMBER(nr) ", %eax; syscall\n"
#define LEAVE SYSCALL(NR_LEAVE)

/* Run a function in ring 3. Returns 42 if it returned. */
long in_ring3(void (*fn)(void));

/* The body natively, or in ring 0 and in ring 3; the exit status of main(). */
int in_all_rings(int argc, char **argv, void (*body)(void));

#endif
