// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program in the sandbox mounts file systems whose options name descriptors or contain pointers,
 * or which would have dune-run's own file interpreted by a native program; and it mounts a file on
 * /proc/self/exe. Fails when the kernel is asked for one of these file systems, or when
 * the file covers dune-run's.
 */
#define _GNU_SOURCE
#include "hostile.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
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

static bool is_file(const char *name, const struct stat *file)
{
	struct stat st;

	return !stat(name, &st) && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

/* As root, in a mount namespace of its own. */
static void test_target(const char *program)
{
	int fd = open("file", O_CREAT | O_RDONLY, 0600);
	struct stat file;

	if (fd < 0 || fstat(fd, &file))
		bail("file: %s", strerror(errno));
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		bail("a mount namespace: %s", strerror(errno));
	is(call(SYS_mount, (long)"file", (long)"/proc/self/exe", 0, MS_BIND, 0, 0), 0,
	   "mount of a file on /proc/self/exe: 0");
	ok(is_file(program, &file), "the file covers the program");
	is(call(SYS_umount2, (long)"/proc/self/exe", 0, 0, 0, 0, 0), 0,
	   "umount2 of /proc/self/exe: 0");
	ok(!is_file(program, &file), "nothing covers the program");
	close(fd);
}

int main(int argc, char **argv)
{
	leave_session();
	mkdir("mount", 0700);
	test_mount("binfmt_misc", "which would interpret dune-run's own file natively");
	test_mount("9p", "whose options name descriptors");
	test_mount("coda", "whose data names descriptors");
	test_mount("nfs", "whose data is full of pointers");
	test_mount("nfs4", "whose data is full of pointers");
	rmdir("mount");
	if (geteuid() == 0)
		test_target(argv[0]);
	else
		skip("this needs root", "mount of a file on /proc/self/exe");
	return done();
}
