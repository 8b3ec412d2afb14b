/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * For the programs that attack the runtime: where it is, system calls without
 * libc's errno, and descriptors.
 */
#ifndef DUNE_TESTS_RUN_LIB_H
#define DUNE_TESTS_RUN_LIB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/super_range.h"

/* Pages of the runtime that are mapped. */
#define HEADER	(SUPER_BASE + GUARD_REGION_SIZE)	/* dune-run's ELF header */
#define IMAGE	(HEADER + 0x1000)		/* its code */
#define SPARE	(SUPER_BASE + 0x100ff000)	/* the last of the arena, until it grows */

/* A system call: the result, or the negative error number. */
long call(long nr, long a, long b, long c, long d, long e, long f);

/*
 * The numbers of the open descriptors whose link in /proc contains @what,
 * ascending: the first @max of them. Returns how many.
 */
int find_descriptors(const char *what, int *fds, int max);

#endif
