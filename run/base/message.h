/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Messages to people. */
#ifndef DUNE_RUN_MESSAGE_H
#define DUNE_RUN_MESSAGE_H

/*
 * Print "dune-run: PROBLEM OBJECT: ERROR: ADVICE" to stderr. The object may be NULL, and the
 * error (-errno) 0.
 */
void message(const char *problem, const char *object, long err, const char *advice);
/*
 * Print the message as message() does, and end the process with @status. Works in user
 * mode and in ring 0.
 */
void die(int status, const char *problem, const char *object, long err, const char *advice)
	__attribute__((noreturn));

#endif /* DUNE_RUN_MESSAGE_H */
