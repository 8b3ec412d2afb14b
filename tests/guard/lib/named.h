/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Attacks that have names. A program makes all of them, or those that its arguments name: the
 * test of weakened guards (weak/) makes those that must succeed there.
 */
#ifndef DUNE_TESTS_NAMED_H
#define DUNE_TESTS_NAMED_H

#include <stddef.h>

/* Who makes an attack. */
enum attacker {
	ATTACKER,	/* attack/: its error, or what it has found */
	OUTSIDE,	/* the kernel around the guarded module (inside/) */
	KEEPER,		/* the kernel around the module of class S (secret/) */
	LIAR,		/* the same kernel: outside_lie(), by the numbers @with */
	PROGRAM,	/* @function */
	PROGRAM_WITH,	/* @function_with, by the first of the numbers @with */
};

/**
 * struct attack - an attack, and what it gives as long as it is stopped
 * @name:	one word
 * @what:	a line about it
 * @by:		the attacker: a module, which gets the command @word with the numbers @with; or the
 *		test program, which calls @function
 * @stopped:	the result
 * @before:	prepares it, or NULL
 * @lacks:	says why it cannot be made here, or returns NULL; or NULL
 */
struct attack {
	const char *name, *what;
	enum attacker by;
	const char *word;
	unsigned long long with[3], stopped;
	unsigned long long (*function)(void);
	unsigned long long (*function_with)(unsigned int number);
	void (*before)(void);
	const char *(*lacks)(void);
};

/* What a table of attacks is written with. */
#define NAMED(one, line)	.name = (one), .what = (line)
#define BY(who, request, ...)	.by = (who), .word = (request), .with = { __VA_ARGS__ }
#define BY_LIE(...)		.by = LIAR, .with = { __VA_ARGS__ }
#define BY_US(steps)		.by = PROGRAM, .function = (steps)
#define BY_US_WITH(steps, one)	.by = PROGRAM_WITH, .function_with = (steps), .with = { one }
#define COUNT(table)		(sizeof(table) / sizeof((table)[0]))

/* One verdict for each attack, or for those that are named, if names are given. */
void attacks_make(const struct attack *attacks, size_t count, char **names);
/* Bails out if a name was none's. */
void attacks_end(char **names);

#endif
