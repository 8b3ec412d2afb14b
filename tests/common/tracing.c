// SPDX-License-Identifier: MIT OR Apache-2.0
/* Writing to tracefs, and counting events: see tracing.h. */
#define _GNU_SOURCE
#include "tracing.h"
#include "proc.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

bool trace_mount(const char *file)
{
	char path[200];

	mount("tracefs", TRACING, "tracefs", 0, NULL);
	snprintf(path, sizeof(path), TRACING "%s", file);
	return !access(path, F_OK);
}

int trace_write(const char *file, const char *text)
{
	char path[200];

	snprintf(path, sizeof(path), TRACING "%s", file);
	return file_write(path, text);
}

/* Opening it with O_TRUNC is what clears it: a write has no effect. */
void trace_clear(void)
{
	close(open(TRACING "trace", O_WRONLY | O_TRUNC | O_CLOEXEC));
}

int trace_count(const char *text)
{
	FILE *f = fopen(TRACING "trace", "re");
	char line[1000];
	int n = 0;

	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		n += line[0] != '#' && strstr(line, text);
	fclose(f);
	return n;
}
