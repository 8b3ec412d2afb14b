/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Verdict lines for prove (the Test Anything Protocol), for all test programs
 * in C. tap.bash prints the same lines for the scripts.
 */
#ifndef DUNE_TESTS_TAP_H
#define DUNE_TESTS_TAP_H

#include <stdbool.h>

#define PRINTF(f, a) __attribute__((format(printf, f, a)))

/*
 * The verdicts so far. A test that leaves some of them to a child with a copy
 * of this memory takes the child's numbers over.
 */
extern unsigned int tap_count, tap_failed;

/*
 * The circumstance in which a test now runs, printed before the name of each verdict; ""
 * where there is only one.
 */
extern const char *tap_where;

/* One verdict. Returns @good. */
bool ok(bool good, const char *fmt, ...) PRINTF(2, 3);

/* One verdict on two numbers, both of which are printed where they differ. */
bool is(long got, long want, const char *fmt, ...) PRINTF(3, 4);

/* One test that this machine cannot make, and what it lacks. */
void skip(const char *reason, const char *fmt, ...) PRINTF(2, 3);

/* A line for the reader. */
void diag(const char *fmt, ...) PRINTF(1, 2);

/*
 * 0 if the call @name, which has returned @ret, failed with @err. Otherwise prints what it did, and
 * returns 1.
 */
int fails_with(long ret, int err, const char *name);

/* Nothing further can be tested: print why and exit. */
void bail(const char *fmt, ...) PRINTF(1, 2) __attribute__((noreturn));

/*
 * In a child that prints no verdicts: print why the parent's next verdict will be bad, and exit
 * with 1.
 */
void child_fails(const char *fmt, ...) PRINTF(1, 2) __attribute__((noreturn));

/* The exit status of a child that finds that this machine cannot make its test. */
#define CHILD_SKIPS	77

/* Print the plan; the exit status of main(). */
int done(void);

#endif
