/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Strings, and numbers in them. */
#ifndef DUNE_RUN_TEXT_H
#define DUNE_RUN_TEXT_H

#include "types.h"

#define PATH_BYTES	4096	/* PATH_MAX with its NUL */

/* The number of characters before the NUL. */
size_t text_len(const char *s);
bool text_equal(const char *a, const char *b);
/* Whether @s begins with @prefix. */
bool text_starts(const char *s, const char *prefix);
/* The part of @s after the last @c, or all of it. */
const char *text_last(const char *s, char c);
/* Copy @s to @to, cut off so that it has at most @size bytes with its NUL. Returns its length. */
size_t text_copy(char *to, size_t size, const char *s);
/* Append @s at @to, cut off so that its NUL is before @end. Returns where the NUL is. */
char *text_append(char *to, const char *end, const char *s);
/* The same for @value as a decimal number. */
char *text_number(char *to, const char *end, u64 value);
/*
 * The decimal number of at most 18 digits at the beginning of @s. Stores where it
 * ends in @rest. Returns whether there is a digit; @value is 0 where there is none.
 */
bool text_to_number(const char *s, const char **rest, u64 *value);
/* Store the name of descriptor @fd in /proc at @to, which has @size bytes. */
void text_fd_name(char *to, u64 size, int fd);

#endif /* DUNE_RUN_TEXT_H */
