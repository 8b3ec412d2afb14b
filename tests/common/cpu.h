/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The CPUs that a test may use, and their vendor. */
#ifndef DUNE_TESTS_CPU_H
#define DUNE_TESTS_CPU_H

#include <stdbool.h>

/*
 * The number of the @n-th CPU (from 0) that this process may use, or the last
 * one: 0 need not be among them.
 */
int usable_cpu(int n);

/* Let process @pid run on @cpu alone. */
void bind_to(int pid, int cpu);
/* Run on this CPU alone. */
void pin_to(int cpu);

/* Whether the processor has SVM or is AMD's. */
bool is_amd(void);

#endif
