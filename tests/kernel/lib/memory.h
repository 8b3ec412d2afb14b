/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * For the tests of memory, memory_*.c: a guest sees the process's memory as it is,
 * while other threads and processes change the mappings. These functions access
 * memory in the guest, and change it under a guest that reads it all the time.
 */
#ifndef DUNE_TESTS_MEMORY_H
#define DUNE_TESTS_MEMORY_H

#include "guest.h"

#define STORED	0x5a5a	/* what store() writes */

/* Call first: a watchdog of @seconds over the program, the kernel log, and @g. */
void memory_begin(struct guest *g, unsigned int seconds);
/* The verdict on the kernel log, and the plan; the exit status of main(). */
int memory_end(void);

/* How often each mapping is changed. */
long rounds(void);

/* Zeroed private memory, which can be written. */
void *new_memory(unsigned long size);
/* The descriptor of a file in memory. */
int new_file(unsigned long size);
/* Zeroed memory of a file, shared with all other mappings of it. */
void *map_file(int file, unsigned long size);
/* One huge page, if the kernel has one, or else memory with its size and alignment. */
void *new_huge_page(void);

#define HUGE_SIZE	(2UL << 20)

/* ---- single accesses ---- */

/*
 * Call fn(p) in the guest. 0, with the function's value in @value unless that is
 * NULL; or the number of the SIGSEGV or SIGBUS that the access raises; or -1 where
 * the guest ends otherwise.
 */
int access_by(struct guest *g, u64 (*fn)(void *arg), volatile void *p, u64 *value);

/* In the guest: write STORED to the word at @address. guest_load() reads one. */
u64 store(void *address);

/* ---- changes under a guest that reads ---- */

/* The word that the guest reads; change the mapping of its page. */
extern volatile u64 *area;

/*
 * One verdict: while the guest reads @area, another thread calls fn(n) for rising n,
 * rounds() times. @fn must let the page hold n; it may hold 0 in between. When @fn has
 * returned, the guest must not read less than n.
 */
void under_change(struct guest *g, const char *name, void (*fn)(u64 n));
/* The same @count times, while @fn also unmaps the page for a moment: SIGSEGV is no failure. */
void under_unmapping(struct guest *g, const char *name, void (*fn)(u64 n), long count);

#endif
