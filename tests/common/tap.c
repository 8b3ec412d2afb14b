// SPDX-License-Identifier: MIT OR Apache-2.0
/* Verdict lines: see tap.h. */
#include "tap.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

unsigned int tap_count, tap_failed;
const char *tap_where = "";

static void line(const char *head, const char *fmt, va_list ap, const char *tail)
{
	char text[600];

	vsnprintf(text, sizeof(text), fmt, ap);
	/* A '#' would begin a directive of TAP. */
	for (char *p = text; *p; p++) {
		if (*p == '#' || *p == '\n')
			*p = ' ';
	}
	printf("%s%s%s\n", head, text, tail);
	fflush(stdout);
}

static void verdict(bool good, const char *fmt, va_list ap, const char *tail)
{
	char head[100];

	snprintf(head, sizeof(head), "%sok %u - %s", good ? "" : "not ", ++tap_count, tap_where);
	tap_failed += !good;
	line(head, fmt, ap, tail);
}

bool ok(bool good, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	verdict(good, fmt, ap, "");
	va_end(ap);
	return good;
}

bool is(long got, long want, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	verdict(got == want, fmt, ap, "");
	va_end(ap);
	if (got != want)
		diag("got %ld (0x%lx), want %ld (0x%lx)", got, got, want, want);
	return got == want;
}

void skip(const char *reason, const char *fmt, ...)
{
	char tail[300];
	va_list ap;

	snprintf(tail, sizeof(tail), " # SKIP %s", reason);
	va_start(ap, fmt);
	verdict(true, fmt, ap, tail);
	va_end(ap);
}

void diag(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	line("# ", fmt, ap, "");
	va_end(ap);
}

int fails_with(long ret, int err, const char *name)
{
	if (ret == -1 && errno == err)
		return 0;
	diag("%s: %ld, %s", name, ret, strerror(errno));
	return 1;
}

void bail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	line("Bail out! ", fmt, ap, "");
	va_end(ap);
	exit(255);
}

void child_fails(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	line("# ", fmt, ap, "");
	va_end(ap);
	_exit(1);
}

int done(void)
{
	printf("1..%u\n", tap_count);
	fflush(stdout);
	return tap_failed ? 1 : 0;
}
