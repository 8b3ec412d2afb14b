// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Strings and the messages to people. A message is one line: the error, its
 * object, and advice.
 */
#include "run.h"

#include <asm/unistd.h>

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

const char *text_errno(long err)
{
	static char other[32];
	char *p;

	switch (err < 0 ? -err : err) {
	case EPERM:
		return "Operation not permitted";
	case ENOENT:
		return "No such file or directory";
	case EIO:
		return "Input/output error";
	case ENXIO:
		return "No such device or address";
	case ENOEXEC:
		return "Exec format error";
	case ENOMEM:
		return "Cannot allocate memory";
	case EACCES:
		return "Permission denied";
	case EEXIST:
		return "File exists";
	case ENODEV:
		return "No such device";
	case ENOTDIR:
		return "Not a directory";
	case EISDIR:
		return "Is a directory";
	case EINVAL:
		return "Invalid argument";
	case EMFILE:
		return "Too many open files";
	case ELOOP:
		return "Too many levels of symbolic links";
	case ENAMETOOLONG:
		return "File name too long";
	case EPROTO:
		return "Protocol error";
	case ELIBBAD:
		return "Accessing a corrupted shared library";
	}
	p = text_append(other, other + sizeof(other), "error ");
	text_number(p, other + sizeof(other), err < 0 ? -err : err);
	return other;
}

void message(const char *what, const char *detail, const char *advice)
{
	char line[PATH_BYTES + 512];
	const char *end = line + sizeof(line) - 1;
	char *p;

	p = text_append(line, end, "dune-run: ");
	p = text_append(p, end, what);
	if (detail) {
		p = text_append(p, end, ": ");
		p = text_append(p, end, detail);
	}
	if (advice) {
		p = text_append(p, end, ": ");
		p = text_append(p, end, advice);
	}
	*p++ = '\n';
	SYS3(__NR_write, 2, line, p - line);
}

void die(int status, const char *what, const char *detail, const char *advice)
{
	message(what, detail, advice);
	for (;;)
		SYS1(__NR_exit_group, status);
}
