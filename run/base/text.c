// SPDX-License-Identifier: MIT OR Apache-2.0
/* Strings, and numbers in them. */
#include "text.h"

size_t text_len(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

bool text_equal(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

bool text_starts(const char *s, const char *prefix)
{
	while (*prefix && *s == *prefix) {
		s++;
		prefix++;
	}
	return !*prefix;
}

const char *text_last(const char *s, char c)
{
	const char *last = s;

	for (; *s; s++)
		if (*s == c)
			last = s + 1;
	return last;
}

size_t text_copy(char *to, size_t size, const char *s)
{
	return text_append(to, to + size, s) - to;
}

char *text_append(char *to, const char *end, const char *s)
{
	while (*s && to + 1 < end)
		*to++ = *s++;
	*to = 0;
	return to;
}

char *text_number(char *to, const char *end, u64 value)
{
	char digits[24];
	char *p = digits + sizeof(digits);

	*--p = 0;
	do {
		*--p = '0' + value % 10;
		value /= 10;
	} while (value);
	return text_append(to, end, p);
}

bool text_to_number(const char *s, const char **rest, u64 *value)
{
	const char *start = s;
	u64 v = 0;

	for (; *s >= '0' && *s <= '9' && s - start < 18; s++)
		v = v * 10 + (*s - '0');
	*value = v;
	*rest = s;
	return s != start;
}

void text_fd_name(char *to, u64 size, int fd)
{
	text_number(text_append(to, to + size, "/proc/self/fd/"), to + size, fd);
}
