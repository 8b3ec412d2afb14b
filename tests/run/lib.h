/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the programs that attack the runtime share: verdict lines of TAP, and calls without libc's errno. */
#ifndef DUNE_TESTS_RUN_LIB_H
#define DUNE_TESTS_RUN_LIB_H

/* One verdict. */
void ok(int good, const char *name);

/* One verdict: @got must be @want. */
void expect(long got, long want, const char *name);

/* One test that this machine cannot make, and what it lacks. */
void skip(const char *reason, const char *name);

/* Print the plan; the exit status of main(). */
int done(void);

/* A system call: the result, or the negative error number. */
long call(long nr, long a, long b, long c, long d, long e, long f);

/*
 * The numbers of the open descriptors whose link in /proc contains @what,
 * ascending: the first @max of them. Returns how many.
 */
int find_descriptors(const char *what, int *fds, int max);

#endif
