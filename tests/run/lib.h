/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the programs that attack the runtime share: calls without libc's errno, and descriptors. */
#ifndef DUNE_TESTS_RUN_LIB_H
#define DUNE_TESTS_RUN_LIB_H

/* A system call: the result, or the negative error number. */
long call(long nr, long a, long b, long c, long d, long e, long f);

/*
 * The numbers of the open descriptors whose link in /proc contains @what,
 * ascending: the first @max of them. Returns how many.
 */
int find_descriptors(const char *what, int *fds, int max);

#endif
