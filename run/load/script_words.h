/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* "#!": the program that is executed in place of a script, between script.c and exec.c. */
#ifndef DUNE_RUN_SCRIPT_WORDS_H
#define DUNE_RUN_SCRIPT_WORDS_H

#include "text.h"

#define SCRIPT_DEPTH	5	/* as fs/exec.c */
#define SCRIPT_HEAD	256	/* BINPRM_BUF_SIZE */

/* The program to execute: its name, and the words that scripts put before its arguments. */
struct script {
	char name[PATH_BYTES];		/* of the program or script, as it was called */
	/* The first line of each script; last, the program's head. */
	char text[SCRIPT_DEPTH + 1][SCRIPT_HEAD + 1];	/* each with a NUL */
	const char *words[SCRIPT_DEPTH * 2 + 1];	/* before argv[1] */
	unsigned int count;
	bool unreachable_name;		/* @name ends with the old program */
};

/* There is one: a process executes one program at a time. Only script.c changes it. */
extern struct script script;

/*
 * Follow "#!" from the open file @fd until a program is reached. Returns its
 * descriptor, @fd or a new one; or an error, and @fd is closed.
 */
long follow_scripts(long fd);

#endif /* DUNE_RUN_SCRIPT_WORDS_H */
