/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Random states of a guest, each with random code, or a random ioctl: what fuzz.c runs
 * batches of. A seed determines all of a state.
 */
#ifndef DUNE_TESTS_FUZZ_STATES_H
#define DUNE_TESTS_FUZZ_STATES_H

#include "guest.h"

#define REASONS		(DUNE_EXIT_UNKNOWN + 1)
#define STATE_RUNS	6	/* of a state at most: one for each exit that allows another */
#define STATE_CODE	128	/* bytes; zeroes follow */

/*
 * The guest may overwrite them, as any memory of its process: the reader takes only counts
 * that can be true.
 */
struct state_counts {
	u64 states, runs, reasons[REASONS], errors, ioctls;
	/* The last run, to be seen when it hangs. */
	struct dune_state state;
	struct dune_regs regs;
	u8 code[STATE_CODE];
};

/* The guest that takes the states, a page for their code, and where to count. */
void states_begin(struct guest *guest, u8 *page, struct state_counts *c);
/*
 * Make the state that @seed determines and run it. Ends the process if that closed the vCPU, or if
 * the state runs without a host half.
 */
void states_run(u64 seed);
/* Print the last run. */
void states_show(const struct state_counts *c);

/* The finalizer of splitmix64: neighbouring numbers become unrelated ones. */
u64 mix(u64 x);

#endif
