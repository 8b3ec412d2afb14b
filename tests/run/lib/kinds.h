/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The rows of run/calls/syscalls.def, for the programs that make each call of it: a program
 * includes that file between the braces of an array of struct entry.
 */
#ifndef DUNE_TESTS_RUN_KINDS_H
#define DUNE_TESTS_RUN_KINDS_H

#include <stdbool.h>

/* The kinds of arguments, by the letters of syscalls.def. */
enum kind { V, P, B, F, N, R, A8, I, I6, I8, I12 };

/* Is the next argument the length of what this one points to? */
static inline bool has_length(enum kind k)
{
	return k == B || k == R || k >= A8;
}

struct entry {
	int nr;
	const char *name;
	int deny;		/* an error number; 0 if the call is not refused */
	enum kind args[6];
};

#define FORWARD(nr, name, ...)		{ nr, #name, 0, { __VA_ARGS__ } },
#define LIBDUNE(nr, name, ...)		{ nr, #name, 0, { __VA_ARGS__ } },
#define FUNCTION(nr, name, fn, ...)	{ nr, #name, 0, { __VA_ARGS__ } },
#define DENY(nr, name, err)		{ nr, #name, err, { V } },

#endif
