/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Dune processes that work without end. Each verifies its memory, system
 * calls and registers in every round, while a thread of its own replaces a
 * page below it.
 */
#ifndef DUNE_TESTS_WORKERS_H
#define DUNE_TESTS_WORKERS_H

#include <stdbool.h>

#define WORKERS	3

/* Fork WORKERS processes, each with a guest. To be ended by workers_kill(). */
void workers_start(void);
/* Whether all of them make progress and are well; waits for it, and prints the error. */
bool workers_move(void);
/* Kill them; whether all died of that. */
bool workers_kill(void);
/* One process that enters, makes some calls, and ends in one of several ways. */
bool worker_comes_and_goes(unsigned int which);

#endif
