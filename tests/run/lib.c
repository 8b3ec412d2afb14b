// SPDX-License-Identifier: MIT OR Apache-2.0
/* See lib.h. */
#define _GNU_SOURCE
#include "lib.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int tests, failed;

void ok(int good, const char *name)
{
	printf("%sok %d - %s\n", good ? "" : "not ", ++tests, name);
	failed += !good;
	fflush(stdout);
}

void expect(long got, long want, const char *name)
{
	char text[200];

	if (got == want)
		snprintf(text, sizeof(text), "%s", name);
	else
		snprintf(text, sizeof(text), "%s: got %ld, not %ld", name, got, want);
	ok(got == want, text);
}

void skip(const char *reason, const char *name)
{
	printf("ok %d - %s # SKIP %s\n", ++tests, name, reason);
	fflush(stdout);
}

int done(void)
{
	printf("1..%d\n", tests);
	return failed != 0;
}

long call(long nr, long a, long b, long c, long d, long e, long f)
{
	long ret = syscall(nr, a, b, c, d, e, f);

	return ret == -1 ? -errno : ret;
}

int find_descriptors(const char *what, int *fds, int max)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;
	char path[300], link[300];
	int found = 0;

	while (d && found < max && (e = readdir(d))) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
		n = readlink(path, link, sizeof(link) - 1);
		if (n < 0)
			continue;
		link[n] = 0;
		if (strstr(link, what))
			fds[found++] = atoi(e->d_name);
	}
	if (d)
		closedir(d);
	return found;
}
