// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * At the edge of what a process may have: descriptors, rights, data. Prints
 * what happened. limits.bash fails when that differs between the native run and the
 * one in the sandbox: the runtime then needs something that the program gave up or
 * used up.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int child_of(pid_t pid)
{
	int status = -1;

	if (pid < 0)
		return -errno;
	if (waitpid(pid, &status, 0) != pid)
		return -errno;
	return status;
}

static void forks(const char *when)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(getppid() > 0 ? 11 : 12);
	printf("%s: fork: %#x\n", when, child_of(pid));
	pid = vfork();
	if (!pid)
		_exit(13);
	printf("%s: vfork: %#x\n", when, child_of(pid));
	fflush(stdout);
}

static void execs(const char *when)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		execl("/proc/self/exe", "limits", "exit", "14", NULL);
		_exit(errno);
	}
	printf("%s: fork and execve: %#x\n", when, child_of(pid));
	pid = vfork();
	if (!pid) {
		execl("/proc/self/exe", "limits", "again", NULL);
		_exit(errno);
	}
	printf("%s: vfork and execve, twice: %#x\n", when, child_of(pid));
}

static void set_limit(int which, rlim_t value)
{
	struct rlimit limit;

	getrlimit(which, &limit);
	limit.rlim_cur = value;
	setrlimit(which, &limit);
}

/* No number below the limit is free: natively neither a fork nor execve needs one. */
static void descriptors(void)
{
	int last = -1, fd;

	set_limit(RLIMIT_NOFILE, 1024);
	while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		last = fd;
	printf("full: %s\n", strerror(errno));
	forks("no free descriptor");
	execs("no free descriptor");
	set_limit(RLIMIT_NOFILE, 4);
	forks("limit 4");
	execs("limit 4");
	set_limit(RLIMIT_NOFILE, 0);
	forks("limit 0");
	set_limit(RLIMIT_NOFILE, 1024);
	close(last);
	forks("one free descriptor");
}

/* Two levels of fork, and of execve, after each way of losing /dev/dune. */
static void grandchildren(const char *when)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		forks(when);
		_exit(15);
	}
	printf("%s: child: %#x\n", when, child_of(pid));
}

static void no_device(void)
{
	char dir[] = "emptyXXXXXX";

	if (unshare(CLONE_NEWNS))
		printf("unshare: %s\n", strerror(errno));
	grandchildren("new mount namespace");
	/* as the user nobody, who may not open /dev/dune (limits.bash) */
	setgroups(0, NULL);
	if (fork()) {
		wait(NULL);
	} else {
		if (setgid(65534) || setuid(65534))
			printf("setuid: %s\n", strerror(errno));
		grandchildren("nobody");
		execs("nobody");
		fflush(stdout);
		_exit(0);
	}
	fflush(stdout);
	if (!mkdtemp(dir) || chroot(dir) || chdir("/"))
		printf("chroot: %s\n", strerror(errno));
	grandchildren("empty root");
}

/*
 * A vfork child lowers its parent's limit on data so far that the parent cannot map
 * anything where the child's vCPU was. After four such children, children with memory of
 * their own must find all of the runtime's page tables.
 */
static void lowered(void)
{
	struct rlimit old, low;
	pid_t self = getpid(), pid;
	static unsigned long i;

	getrlimit(RLIMIT_DATA, &old);
	low = old;
	low.rlim_cur = 4096;
	for (i = 0; i < 4; i++) {
		pid = vfork();
		if (!pid) {
			prlimit(self, RLIMIT_DATA, &low, NULL);
			_exit(18);
		}
		setrlimit(RLIMIT_DATA, &old);
		printf("vfork: %#x\n", child_of(pid));
	}
	for (i = 2; i < 10; i++) {
		volatile char *p = mmap((void *)(i << 39), 4096, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

		*p = i;
		fflush(stdout);
		pid = fork();
		if (!pid)
			_exit(*p);
		printf("child that reads %p: %#x\n", p, child_of(pid));
	}
}

/* 10 MB of data: enough for a small program. */
static void data(void)
{
	void *large;

	set_limit(RLIMIT_DATA, 10 << 20);
	forks("10 MB of data");
	execs("10 MB of data");
	printf("4 MB: %s\n", malloc(4 << 20) ? "there" : strerror(errno));
	large = mmap(NULL, 16 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	printf("16 MB: %s\n", large == MAP_FAILED ? strerror(errno) : "there");
}

/* One byte in each of @count gigabytes. */
static void gigabytes(long count)
{
	long i, bad = 0;

	for (i = 0; i < count; i++) {
		char *p = (void *)(0x100000000000UL + (i << 30));

		if (mmap(p, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != p) {
			printf("mmap %ld: %s\n", i, strerror(errno));
			break;
		}
		*p = i;
		bad += *p != (char)i;
		munmap(p, 4096);
	}
	printf("%ld gigabytes, %ld wrong\n", i, bad);
}

/* A thousand children in this memory; each stack and vCPU is given back. */
static void vfork_children(void)
{
	static int i, bad;

	for (i = 0; i < 1000; i++) {
		pid_t pid = vfork();

		if (!pid)
			_exit(16);
		bad += child_of(pid) != 16 << 8;
	}
	printf("%d vforks, %d wrong\n", i, bad);
}

/* The result of a call that a filter answers (restrict.c). */
static void odd(void)
{
	long ret = syscall(SYS_getppid);

	printf("getppid: %ld, %d\n", ret, ret == -1 ? errno : 0);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(what, "exit"))
		return atoi(argv[2]);
	if (!strcmp(what, "again"))
		execl("/proc/self/exe", "limits", "exit", "17", NULL);
	if (!strcmp(what, "descriptors"))
		descriptors();
	if (!strcmp(what, "no-device"))
		no_device();
	if (!strcmp(what, "data"))
		data();
	if (!strcmp(what, "gigabytes"))
		gigabytes(argc > 2 ? atol(argv[2]) : 5000);
	if (!strcmp(what, "lowered"))
		lowered();
	if (!strcmp(what, "forks"))
		forks("a filter");
	if (!strcmp(what, "odd"))
		odd();
	if (!strcmp(what, "vfork-children"))
		vfork_children();
	return 0;
}
