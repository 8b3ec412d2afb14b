/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Commands of the shell, and what they print. */
#ifndef DUNE_TESTS_GUARD_COMMAND_H
#define DUNE_TESTS_GUARD_COMMAND_H

/* What the last command printed, and a 0. */
extern char command_output[8192];

/* Run a command. Its exit status. */
int command_run(const char *command);
/* Run dunectl guard with these words of the shell, and its errors in the output. */
int dunectl_guard(const char *words);
/* The lines of the output. */
int command_lines(void);

#endif
