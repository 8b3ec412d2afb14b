// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program in the sandbox mounts file systems whose options name descriptors or contain pointers,
 * or which would have dune-run's own file interpreted by a native program. Fails when the kernel
 * is asked for one of them.
 */
#define _GNU_SOURCE
#include "hostile.h"
#include "tap.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The program gets the error of a kernel that lacks the file system. */
static void test_mount(const char *type, const char *reason)
{
	is(call(SYS_mount, (long)"none", (long)"mount", (long)type, 0, 0, 0), -ENODEV,
	   "mount of %s, %s: ENODEV", type, reason);
	is(call(SYS_fsopen, (long)type, 0, 0, 0, 0, 0), -ENODEV, "fsopen of %s: ENODEV", type);
}

int main(void)
{
	leave_session();
	mkdir("mount", 0700);
	test_mount("binfmt_misc", "which would interpret dune-run's own file natively");
	test_mount("9p", "whose options name descriptors");
	test_mount("coda", "whose data names descriptors");
	test_mount("nfs", "whose data is full of pointers");
	test_mount("nfs4", "whose data is full of pointers");
	rmdir("mount");
	return done();
}
