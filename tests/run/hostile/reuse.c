// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A file that gets the numbers of the program's file: device and inode. Numbers of
 * devices are given out again when a file system ends, and procfs takes those of its
 * inodes from a counter that a program can read and advance. So the program runs from a
 * tmpfs, at an inode number that procfs will reach; it leaves that file, unmounts the
 * tmpfs, and mounts procfs in its place.
 *
 *   reuse DIRECTORY
 *
 * as root. Prints what open() returns for the memory of a process whose file in procfs
 * has both numbers, or "missed": another process took a number.
 * A helper of reuse.bash, which fails when open() succeeds.
 */
#define _GNU_SOURCE
#include "maps.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define AHEAD	2000	/* inodes that may be made elsewhere until procfs is mounted */

static void fail(const char *what)
{
	printf("%s: %m\n", what);
	exit(EXIT_FAILURE);
}

/* The counter of procfs is also that of pipes, on each CPU. */
static ino_t next_inode(void)
{
	struct stat st;
	int fds[2];

	if (pipe(fds) || fstat(fds[0], &st))
		fail("pipe");
	close(fds[0]);
	close(fds[1]);
	return st.st_ino + 1;
}

static void copy_self(int to)
{
	int from = open("/proc/self/exe", O_RDONLY);

	while (from >= 0 && sendfile(to, from, NULL, 1 << 20) > 0)
		;
	close(from);
}

/* The tmpfs counts its inodes from 1. */
static void start_at(const char *name, ino_t wanted)
{
	struct stat st;
	int fd;

	for (;;) {
		fd = open(name, O_CREAT | O_RDWR | O_EXCL, 0755);
		if (fd < 0 || fstat(fd, &st))
			fail(name);
		if (st.st_ino >= wanted)
			break;
		close(fd);
		unlink(name);
	}
	copy_self(fd);
	close(fd);
	execl(name, name, ".", NULL);
	fail("execl");
}

/* Replaces each mapping of the file by a copy of its content. */
static void leave_file(const char *name)
{
	FILE *mappings = open_mappings();
	struct mapping m;

	while (next_mapping(mappings, &m)) {
		if (!strstr(m.name, name))
			continue;

		size_t size = m.end - m.start;
		int prot = PROT_READ | (m.rights[1] == 'w' ? PROT_WRITE : 0) |
			   (m.rights[2] == 'x' ? PROT_EXEC : 0);
		void *copy = mmap(NULL, size, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (copy == MAP_FAILED)
			fail("mmap");
		memcpy(copy, (void *)m.start, size);
		mprotect(copy, size, prot);
		if (mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, m.start) == MAP_FAILED)
			fail("mremap");
	}
}

/* The first process of a new PID name space, so its files in procfs are new. */
static const char *open_memory(const struct stat *old)
{
	struct stat st;
	int i, fd;

	for (i = 0;; i++) {
		if (mount("proc", "p", "proc", 0, NULL) || stat("p/1", &st))
			fail("procfs");
		if (st.st_dev == old->st_dev)
			break;
		umount("p");
		if (i == 100)
			return "missed: another device";
		usleep(10000);
	}
	while (next_inode() < old->st_ino)
		;
	fd = open("p/1/mem", O_RDONLY);
	if (stat("p/1/mem", &st) || st.st_ino != old->st_ino)
		return "missed: another inode";
	return fd < 0 ? strerror(errno) : "opened";
}

int main(int argc, char **argv)
{
	cpu_set_t cpus;
	struct stat st;
	pid_t child;

	setvbuf(stdout, NULL, _IONBF, 0);
	if (argc != 2) {
		puts("usage: reuse DIRECTORY");
		return EXIT_FAILURE;
	}
	if (chdir(argv[1]))
		fail(argv[1]);
	if (strcmp(argv[1], ".")) {
		CPU_ZERO(&cpus);
		CPU_SET(sched_getcpu(), &cpus);
		sched_setaffinity(0, sizeof(cpus), &cpus);
		mkdir("t", 0755);
		mkdir("p", 0755);
		if (unshare(CLONE_NEWNS | CLONE_NEWPID) ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("t", "t", "tmpfs", 0, NULL))
			fail("tmpfs");
		start_at("t/program", next_inode() + AHEAD);
	}
	if (stat("t/program", &st))
		fail("stat");
	leave_file("t/program");
	if (umount2("t", MNT_DETACH))
		fail("umount");
	child = fork();
	if (child < 0)
		fail("fork");
	if (!child) {
		puts(open_memory(&st));
		return 0;
	}
	waitpid(child, NULL, 0);
	return 0;
}
