/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * For the programs that attack the runtime: where it is, system calls without
 * libc's errno, descriptors, mappings and faults.
 */
#ifndef DUNE_TESTS_RUN_HOSTILE_H
#define DUNE_TESTS_RUN_HOSTILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/super_range.h"

/* Pages of the runtime that are mapped. */
#define HEADER	(SUPER_BASE + GUARD_REGION_SIZE)	/* dune-run's ELF header */
#define IMAGE	(HEADER + 0x1000)		/* its code */
#define SPARE	(ARENA_BASE + ARENA_SIZE - 0x1000)	/* the last of the arena, until it grows */

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
 * How many mappings of the runtime's files lie outside of the supervisor range. All that it
 * maps must lie inside, the vCPU's page first. The path of the program has to have "hostile".
 */
int outside_mappings(void);

/* The signal that f(arg) ends with (0: none), and the signal's code and address. */
int fault_of(void (*f)(void *), void *arg);
void read_byte(void *p);	/* the most common @f */
extern volatile int fault_code;
extern void *volatile fault_address;

/*
 * If the runtime passes on a call that it should refuse, the call must not affect other
 * processes: a session of its own, and no SIGPIPE or SIGALRM.
 */
void leave_session(void);

#endif
