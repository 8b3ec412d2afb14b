// SPDX-License-Identifier: MIT OR Apache-2.0
/* Reading and writing files of /proc and /sys: see proc.h. */
#include "proc.h"
#include "timing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int file_read(const char *path, char *buf, int size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int n, len = 0;

	if (fd < 0)
		return -errno;
	while (len < size - 1 && (n = read(fd, buf + len, size - 1 - len)) > 0)
		len += n;
	close(fd);
	buf[len] = 0;
	return len;
}

long file_number(const char *path)
{
	char buf[64];

	return file_read(path, buf, sizeof(buf)) > 0 ? strtol(buf, NULL, 0) : -1;
}

long file_key(const char *path, const char *key)
{
	static char buf[16384];
	size_t n = strlen(key);

	if (file_read(path, buf, sizeof(buf)) <= 0)
		return -1;
	for (char *p = buf; p; p = strchr(p, '\n')) {
		if (*p == '\n')
			p++;
		if (!strncmp(p, key, n) && p[n] == ':')
			return strtol(p + n + 1, NULL, 10);
	}
	return -1;
}

/* KB of free pages that processors keep for themselves, dozens of MB since 6.7. */
static long kept_by_cpus(void)
{
	FILE *f = fopen("/proc/zoneinfo", "r");
	long pages, kb = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, " count: %ld", &pages) == 1)
			kb += pages * 4;
	if (f)
		fclose(f);
	return kb;
}

long memory_available(void)
{
	file_write("/proc/sys/vm/drop_caches", "3");
	/* RCU frees some of it later. */
	sleep_ms(100);
	return file_key("/proc/meminfo", "MemAvailable") + kept_by_cpus();
}

static bool find_symbol(const char *name, unsigned long *address)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	char line[300], other[200];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%lx %*c %199s", address, other) == 2 && !strcmp(other, name);
	if (f)
		fclose(f);
	return found;
}

bool kernel_has(const char *symbol)
{
	unsigned long address;

	return find_symbol(symbol, &address);
}

unsigned long kernel_address(const char *symbol)
{
	unsigned long address;

	return find_symbol(symbol, &address) ? address : 0;
}

int file_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		err = -errno;
	close(fd);
	return err;
}

bool proc_sleeps(int pid)
{
	char path[40], text[400];
	const char *state;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (file_read(path, text, sizeof(text)) < 0)
		return false;
	/* The name, in parentheses, may have any character. */
	state = strrchr(text, ')');
	return state && state[2] == 'S';
}
