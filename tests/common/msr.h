/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* MSRs by /dev/cpu/N/msr, and whether a CPU has virtualization on. */
#ifndef DUNE_TESTS_MSR_H
#define DUNE_TESTS_MSR_H

#include <stdbool.h>

/* Load msr.ko and open the file of @cpu's MSRs; -1 where there is none. */
int msr_open(int cpu, int flags);

/* Whether @cpu has virtualization on: EFER.SVME on AMD. -1 where no file shows that. */
int virtualization_is_on(int cpu);

/* The reason for the -1, for skip(). */
const char *virtualization_unknown_reason(void);

/* Set or clear EFER.SVME on @cpu. Returns whether that succeeded. */
bool set_svme(int cpu, bool on);

#endif
