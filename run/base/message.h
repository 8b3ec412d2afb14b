/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Messages to people. */
#ifndef DUNE_RUN_MESSAGE_H
#define DUNE_RUN_MESSAGE_H

/* The message of an error, positive or negative; valid until the next call. */
const char *errno_text(long err);
/* Print "dune-run: WHAT: DETAIL: ADVICE" to stderr; DETAIL and ADVICE may be NULL. */
void message(const char *what, const char *detail, const char *advice);
/*
 * Print the message as message() does, and end the process with @status. Works in user
 * mode and in ring 0.
 */
void die(int status, const char *what, const char *detail, const char *advice)
	__attribute__((noreturn));

#endif /* DUNE_RUN_MESSAGE_H */
