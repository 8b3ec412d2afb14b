/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Hostile guests. Each runs in a child process, and may at most end that child
 * by a signal. After each child the parent's own guest must still run, and at
 * the end the kernel log must hardly have grown.
 *
 * A case fails when the child ends in another way than it must, when the child
 * cannot be killed (hung), or when the machine dies. With an argument, a program
 * runs only the case of that name.
 */
#ifndef DUNE_TESTS_ISOLATED_H
#define DUNE_TESTS_ISOLATED_H

#include "guest.h"

#define ANY_END	(-1)	/* any signal, or any exit status */

/* ---- in the parent ---- */

/* A case that is a function: guest_open() has made @g for it. */
struct isolated {
	const char *name;
	void (*fn)(void);
	int signal;	/* the child's end: this signal, ANY_END, or 0 for exit status 0 */
};

/* Call first: a watchdog of @seconds, and the guest of the parent. */
void isolated_begin(int argc, char **argv, unsigned int seconds);
/* One verdict: run fn(arg) in a child, which must end by @signal. */
void isolated_case(const char *name, void (*fn)(void *arg), void *arg, int signal);
/* The verdicts on the kernel log, and the plan; the exit status of main(). */
int isolated_end(void);
/* A main() of @count cases. */
int isolated_main(int argc, char **argv, const struct isolated *cases, unsigned int count);

/* ---- in the child ---- */

#define CODE_AT	0x8000000000UL	/* slot 1 of the tables, its own mapping */

extern struct guest g;
extern u8 *page;	/* one page of guest code, writable and executable */

/* One page; the child ends where there is none. */
void *map_page(int prot);
/* For a guest that never ends: SIGALRM ends the process after @ms, also on slow machines. */
void end_after(unsigned int ms);
/*
 * For a guest that must end by itself: SIGALRM ends the process after
 * time_limit(@ms), which is a failure.
 */
void must_end_within(unsigned int ms);
/* Make the VMMCALLs of a code VMCALLs where the processor wants that. */
void use_vmcall(u8 *text, int len);
/* Put code for a guest into @page: @bytes, and INT3 after them. */
void code(const void *bytes, int len);
#define CODE(bytes)	code(bytes, sizeof(bytes) - 1)
/* End the child, with status 0 if it is @good. */
void expect(enum guest_end end, bool good) __attribute__((noreturn));
/* Call fn(arg) in the guest, which must not return. */
void go(u64 (*fn)(void *arg), void *arg);
/* Run a loop of @bytes in the guest until a signal ends the child. */
void loop_of(const char *bytes, int len, int ring, u64 flags);
#define LOOP(bytes, ring, flags)	loop_of(bytes, sizeof(bytes) - 1, ring, flags)

/* In the guest. */
u64 ud2(void *arg);
u64 read_byte(void *address);
u64 write_byte(void *address);
u64 five_getpids(void *arg);	/* their sum */

#endif
