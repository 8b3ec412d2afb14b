// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program in the sandbox truncates files in all ways, its own file first, which the kernel
 * does not protect: the kernel executes dune-run. Fails when the file of the running program is
 * truncated before it is judged, or when another file is not truncated as natively.
 */
#define _GNU_SOURCE
#include "hostile.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static long size_of(const char *name)
{
	struct stat st;

	return stat(name, &st) ? -errno : st.st_size;
}

/* Each way returns a descriptor, 0 or -errno. */
static long by_open(const char *name)
{
	return call(SYS_open, (long)name, O_WRONLY | O_TRUNC, 0, 0, 0, 0);
}

static long by_open_to_read(const char *name)
{
	return call(SYS_open, (long)name, O_RDONLY | O_TRUNC, 0, 0, 0, 0);
}

static long by_openat2(const char *name)
{
	struct open_how how = { .flags = O_WRONLY | O_TRUNC };

	return call(SYS_openat2, AT_FDCWD, (long)name, (long)&how, sizeof(how), 0, 0);
}

static long by_openat2_to_read(const char *name)
{
	struct open_how how = { .flags = O_RDONLY | O_TRUNC };

	return call(SYS_openat2, AT_FDCWD, (long)name, (long)&how, sizeof(how), 0, 0);
}

static long by_creat(const char *name)
{
	return call(SYS_creat, (long)name, 0700, 0, 0, 0, 0);
}

static long by_truncate(const char *name)
{
	return call(SYS_truncate, (long)name, 0, 0, 0, 0, 0);
}

static const struct {
	long (*truncate)(const char *name);
	const char *name;
} ways[] = {
	{ by_open, "open" },
	{ by_open_to_read, "open to read" },
	{ by_openat2, "openat2" },
	{ by_openat2_to_read, "openat2 to read" },
	{ by_creat, "creat" },
	{ by_truncate, "truncate" },
};

#define WAYS	(sizeof(ways) / sizeof(ways[0]))

static void test_running_program(const char *program)
{
	long size = size_of(program);
	size_t i;

	for (i = 0; i < WAYS; i++)
		is(ways[i].truncate(program), -ETXTBSY, "%s does not truncate the running program",
		   ways[i].name);
	is(by_open("/proc/self/exe"), -ETXTBSY,
	   "open of /proc/self/exe does not truncate the running program");
	is(size_of(program), size, "the running program is as long as before");
}

static void test_other_file(const char *file)
{
	long fd;
	size_t i;

	for (i = 0; i < WAYS; i++) {
		fd = open(file, O_RDWR | O_CREAT, 0600);
		if (write(fd, "words", 5) != 5)
			bail("%s: %s", file, strerror(errno));
		close(fd);
		fd = ways[i].truncate(file);
		ok(fd >= 0 && size_of(file) == 0, "%s truncates another file", ways[i].name);
		if (fd > 0)
			close(fd);
	}
	ok(truncate(file, 3) == 0 && size_of(file) == 3, "truncate may lengthen another file");
	unlink(file);
	fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_TRUNC, 0400);
	ok(fd >= 0 && write(fd, "x", 1) == 1, "a new file need not be writable");
	close(fd);
	unlink(file);
}

int main(int argc, char **argv)
{
	leave_session();
	test_running_program(argv[0]);
	test_other_file("file");
	is(by_truncate("."), -EISDIR, "truncate of a directory: EISDIR");
	is(by_truncate("/dev/null"), -EINVAL, "truncate of a device: EINVAL");
	return done();
}
