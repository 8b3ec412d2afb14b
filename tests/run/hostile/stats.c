// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program in the sandbox opens and truncates the memory in which the runtime counts for
 * --stats. stats.bash starts it with this option. Fails when one of the attempts does not give
 * EACCES.
 */
#define _GNU_SOURCE
#include "hostile.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>

static void test_stats(void)
{
	int fds[4], found = find_descriptors("dune-stats", fds, 4), i;
	char path[40];

	for (i = 0; i < found; i++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[i]);
		is(call(SYS_open, (long)path, O_RDWR, 0, 0, 0, 0), -EACCES,
		   "the counters' memory cannot be opened");
		is(call(SYS_open, (long)path, O_RDWR | O_TRUNC, 0, 0, 0, 0), -EACCES,
		   "the counters' memory is not truncated by opening");
		is(call(SYS_truncate, (long)path, 0, 0, 0, 0, 0), -EACCES,
		   "the counters' memory is not truncated by name");
	}
	is(found, 1, "the counters' memory can be seen in /proc");
}

int main(void)
{
	leave_session();
	test_stats();
	return done();
}
