/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * For the programs that attack the runtime: where it is, system calls without
 * libc's errno, descriptors, mappings and faults.
 */
#ifndef DUNE_TESTS_RUN_HOSTILE_H
#define DUNE_TESTS_RUN_HOSTILE_H

#include <stdbool.h>
#include <stdint.h>

#include <dune_addresses.h>
#include "base/super_range.h"

/*
 * Where the supervisor range is in this process, which begins with the stub. super_base of
 * run/base/super_range.h; natively 0.
 */
#define SUPER_BASE	super_base
#define WINDOW		(super_base + 0x1000)		/* its first page */
#define SPARE		(super_base + STUB_SIZE)	/* of the scratch */

/* A system call: the result, or the negative error number. */
long call(long nr, long a, long b, long c, long d, long e, long f);

/*
 * The numbers of the open descriptors whose link in /proc contains @what,
 * ascending: the first @max of them. Returns how many.
 */
int find_descriptors(const char *what, int *fds, int max);

/* One of dune-run's own descriptors, which are hidden from the program; -1 without one. */
int hidden_fd(void);

/*
 * How many mappings of the runtime's files there are besides the stub's. The path of the program
 * has to have "hostile".
 */
int other_mappings(void);

/*
 * The signal that f(arg) ends with (0: none), and the signal's code and address, and the error code
 * of the page fault.
 */
int fault_of(void (*f)(void *), void *arg);
void read_byte(void *p);	/* the most common @f */
extern volatile int fault_code, fault_error;
extern void *volatile fault_address;

/*
 * If the runtime passes on a call that it should refuse, the call must not affect other
 * processes: a session of its own, and no SIGPIPE or SIGALRM.
 */
void leave_session(void);

#endif
