/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The sandbox without its checks (docs/sandbox.md "How the structure is tested without the
 * checks"). In a build of dune-run for tests, the runtime passes on each system call of the program
 * as it is.
 *
 *	runtime.c	the runtime that does so, and looks at its own memory
 *	control.c	one more, that lets the program break out on request
 *	pitfalls/	the program in the sandbox: known ways out of an isolation in one process
 *
 * ../decoy/attack has the generated calls. ../decoy/watch starts both, natively. By a seccomp
 * filter it sees each system call of native code that is neither the stub nor dune-run's start.
 */
#ifndef DUNE_UNCHECKED_H
#define DUNE_UNCHECKED_H

#include <stdint.h>

/*
 * A call whose number has this bit is passed on raw: also one that libdune makes for the program in
 * another way (is_mechanism() in runtime.c). So the module alone decides about it.
 */
#define RAW_BIT		(1U << 16)

/* Only for control.c: as the runtime's own, privileged call. */
#define PRIVILEGED_BIT	(1U << 17)
/* Only for control.c: no system call, but what its first argument names. */
#define CONTROL_BIT	(1U << 18)

enum control {
	CONTROL_READ,		/* the secret is written to the second argument */
	CONTROL_WRITE,		/* a word of the runtime is changed */
	CONTROL_CODE,		/* the sum that was taken of the code is changed */
	CONTROL_JUMP,		/* ring 0 continues at the second argument */
};

/*
 * The runtime reports by a system call that has no effect: getpid(REPORT, enum report, ...), which
 * the watcher's filter sees. Nothing that the program does takes this away. (A program that makes
 * the call itself would cause a wrong finding.) It also prints a line, which is all that is seen
 * without the filter.
 */
#define REPORT		0x5e0ff1ceU

enum report {
	REPORT_CALLS,		/* that so many calls were made */
	REPORT_CHANGED,		/* a canary has changed: which, and the process's last call */
	REPORT_CODE,		/* code or constants have changed */
	REPORT_RING0,		/* ring 0 has executed something else: vector, RIP */
};

/*
 * The secret, of which copies are in the runtime's memory. Each word follows from the one before,
 * so whoever finds some words of it recognizes them without knowing them.
 */
#define SECRET_WORDS	32

static inline uint64_t secret_next(uint64_t word)
{
	uint64_t z = (word ^ 0x5ec2e75ec2e75ec3UL) * 0xbf58476d1ce4e5b9UL;

	return (z ^ z >> 29) * 0x94d049bb133111ebUL + 1;
}

/* Returns whether three words of a secret lie in @size bytes at @from, at any address. */
static inline int has_secret(const void *from, uint64_t size)
{
	const char *p = from;
	uint64_t i, a, b, c;

	for (i = 0; i + 24 <= size; i++) {
		__builtin_memcpy(&a, p + i, 8);
		__builtin_memcpy(&b, p + i + 8, 8);
		if (__builtin_expect(secret_next(a) != b, 1))
			continue;
		__builtin_memcpy(&c, p + i + 16, 8);
		if (secret_next(b) == c)
			return 1;
	}
	return 0;
}

#endif /* DUNE_UNCHECKED_H */
