// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * fork, vfork, clone, posix_spawn, popen, system, exec and exit codes, natively,
 * in ring 0 and in ring 3. Fails when a child does not run, does not share what it
 * should (or shares what it should not), or ends with another status, when clone3() has
 * another result than natively, or when a child leaves a file open that it did not open.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "clone3.h"
#include "rings.h"
#include "tap.h"

extern char **environ;
static volatile int shared;

static int wait_for(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return status;
}

static void test_fork(void)
{
	int p[2], i, status, here = ring();
	pid_t pid, parent = getpid();
	char buf[8] = "";

	if (pipe(p))
		bail("pipe: %s", strerror(errno));
	pid = fork();
	if (!pid) {
		/* The child is in the same ring, and its calls work. */
		if (ring() != here || getppid() != parent)
			child_fails("the child is in another ring, or has another parent");
		if (write(p[1], "child", 5) != 5)
			child_fails("write() in the child failed");
		_exit(33);
	}
	status = wait_for(pid);
	is(WEXITSTATUS(status), 33, "a child of fork() ends with its exit status");
	is(read(p[0], buf, 5), 5, "the parent reads from a pipe what its child of fork() wrote");
	ok(!strcmp(buf, "child"), "a child of fork() writes what it must");
	close(p[0]);
	close(p[1]);

	/* A chain of children, each of the one before. */
	pid = fork();
	if (!pid) {
		for (i = 0; i < 20; i++) {
			pid = fork();
			if (pid)
				_exit(pid < 0 ? 99 : WEXITSTATUS(wait_for(pid)) + 1);
		}
		_exit(0);
	}
	is(WEXITSTATUS(wait_for(pid)), 20, "fork() works in twenty generations of children");

	for (i = 0; i < 50; i++) {
		pid = fork();
		if (!pid)
			_exit(i);
		if (WEXITSTATUS(wait_for(pid)) != i)
			break;
	}
	is(i, 50, "fork() works fifty times, one child after the other");
}

static void test_vfork(void)
{
	volatile int local = 1;
	pid_t pid;

	shared = 0;
	pid = vfork();
	if (!pid) {
		shared = 5;
		local = 2;
		_exit(44);
	}
	is(WEXITSTATUS(wait_for(pid)), 44, "a child of vfork() ends with its exit status");
	is(shared, 5, "a child of vfork() shares memory with its parent");
	is(local, 2, "a child of vfork() shares the stack with its parent");
	pid = vfork();
	if (!pid) {
		execl("/bin/sh", "sh", "-c", "exit 45", NULL);
		child_fails("execl() failed");
	}
	is(WEXITSTATUS(wait_for(pid)), 45, "a child of vfork() executes a program");
	pid = vfork();
	if (!pid) {
		execl("/nonexistent", "x", NULL);
		_exit(errno);
	}
	is(WEXITSTATUS(wait_for(pid)), ENOENT, "vfork and an exec that fails");
}

static void handler(int sig)
{
	(void)sig;
	shared++;
}

static void test_spawn(void)
{
	char *argv[] = { "sh", "-c", "exit 46", NULL };
	char *trap[] = { "sh", "-c", "kill -USR1 $$; exit 1", NULL };
	posix_spawnattr_t attr;
	sigset_t set;
	pid_t pid;
	int i, err, good = 0;

	err = posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ);
	is(err, 0, "posix_spawn() succeeds");
	is(WEXITSTATUS(wait_for(pid)), 46,
	   "the program of posix_spawn() ends with its exit status");
	is(posix_spawn(&pid, "/nonexistent", NULL, NULL, argv, environ), ENOENT,
	   "posix_spawn() of a file that does not exist is ENOENT");

	/* The child resets the handler; the parent keeps it. */
	signal(SIGUSR1, handler);
	posix_spawnattr_init(&attr);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	posix_spawnattr_setsigdefault(&attr, &set);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
	posix_spawn(&pid, "/bin/sh", NULL, &attr, trap, environ);
	is(WTERMSIG(wait_for(pid)), SIGUSR1,
	   "with POSIX_SPAWN_SETSIGDEF the child dies of the signal");
	shared = 0;
	raise(SIGUSR1);
	is(shared, 1, "with POSIX_SPAWN_SETSIGDEF the parent still has its handler");
	signal(SIGUSR1, SIG_DFL);

	for (i = 0; i < 50; i++) {
		posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ);
		good += WEXITSTATUS(wait_for(pid)) == 46;
	}
	is(good, 50, "posix_spawn() works fifty times");
}

static void test_shell(void)
{
	char line[64] = "";
	FILE *f = popen("echo 12 | tr 12 34; exit 3", "r");

	ok(f && fgets(line, sizeof(line), f) && !strcmp(line, "34\n"),
	   "popen() gives what the command prints");
	is(WEXITSTATUS(pclose(f)), 3,
	   "pclose() returns the exit status of a command that was read");
	f = popen("cat >/dev/null", "w");
	ok(f && fputs("some text", f) >= 0, "a command of popen() can be written to");
	is(pclose(f), 0, "pclose() succeeds after a command that was written to");
	is(WEXITSTATUS(system("exit 9")), 9, "system() returns the exit status of the command");
	is(WTERMSIG(system("kill -9 $$")), 9,
	   "system() returns the signal that killed the command");
	is(WEXITSTATUS(system("trap '' HUP; kill -HUP $$; exit 4")), 4,
	   "a command of system() can ignore a signal");
}

static int cloned(void *arg)
{
	(void)arg;
	shared = 77;
	return 12;
}

/* clone(CLONE_VFORK) without CLONE_VM: the parent waits, but the child has its own memory. */
static void test_vfork_copied(void)
{
	int fd = -1, p[2];
	pid_t tid = 0;
	struct pollfd in;
	long pid;

	if (pipe(p))
		bail("pipe: %s", strerror(errno));
	pid = syscall(SYS_clone, CLONE_VFORK | CLONE_PARENT_SETTID | SIGCHLD, 0, &tid, 0, 0);
	if (!pid) {
		usleep(50000);
		_exit(write(p[1], "x", 1) != 1);
	}
	in = (struct pollfd){ .fd = p[0], .events = POLLIN };
	is(poll(&in, 1, 0), 1, "clone(CLONE_VFORK) returns when its child has ended");
	is(tid, pid, "clone(CLONE_VFORK | CLONE_PARENT_SETTID) stores the child's number");
	is(wait_for(pid), 0, "that child ends with its exit status");

	pid = syscall(SYS_clone, CLONE_VFORK | CLONE_PARENT_SETTID | SIGCHLD, 0, 1, 0, 0);
	if (!pid)
		_exit(15);
	is(WEXITSTATUS(wait_for(pid)), 15, "CLONE_PARENT_SETTID with a bad pointer is no error");

	pid = syscall(SYS_clone, CLONE_VFORK | CLONE_PIDFD | SIGCHLD, 0, &fd, 0, 0);
	if (!pid)
		_exit(16);
	in = (struct pollfd){ .fd = fd, .events = POLLIN };
	ok(fd > 0 && poll(&in, 1, 5000) == 1, "clone(CLONE_VFORK | CLONE_PIDFD) gives a pidfd");
	is(WEXITSTATUS(wait_for(pid)), 16, "that child ends with its exit status");
	close(fd);
	close(p[0]);
	close(p[1]);

	pid = vfork();
	if (!pid) {
		pid = syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
		if (!pid)
			_exit(17);
		_exit(pid < 0 ? 1 : WEXITSTATUS(wait_for(pid)) + 1);
	}
	is(WEXITSTATUS(wait_for(pid)), 18, "a vfork child has a child by clone(CLONE_VFORK)");
}

static void test_clone(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	struct { unsigned long v[11]; } args = { { 0 } };
	long pid;

	shared = 0;
	pid = clone(cloned, stack + sizeof(stack), SIGCHLD, NULL);
	is(WEXITSTATUS(wait_for(pid)), 12,
	   "a child of clone() with a stack of its own ends with its exit status");
	is(shared, 0, "a child of clone() with a stack of its own does not share memory");
	pid = clone(cloned, stack + sizeof(stack),
		    CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
	is(WEXITSTATUS(wait_for(pid)), 12,
	   "a child of clone(CLONE_VM | CLONE_VFORK) ends with its exit status");
	is(shared, 77, "a child of clone(CLONE_VM | CLONE_VFORK) shares memory");

	shared = 0;
	pid = syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
	if (!pid) {
		shared = 78;
		_exit(14);
	}
	is(WEXITSTATUS(wait_for(pid)), 14, "a child of clone(CLONE_VFORK) ends with its status");
	is(shared, 0, "a child of clone(CLONE_VFORK) does not share memory");
	test_vfork_copied();

	args.v[4] = SIGCHLD;	/* exit_signal */
	pid = syscall(SYS_clone3, &args, 64);
	if (!pid)
		_exit(13);
	is(WEXITSTATUS(wait_for(pid)), 13, "a child of clone3() ends with its exit status");
	errno = 0;
	ok(syscall(SYS_clone3, NULL, 64) == -1 && errno == EFAULT,
	   "clone3() with a bad pointer is EFAULT");
}

/* The results of try_clone3() before dune_enter(). */
static long natively[CLONE3_CASES];

static void test_clone3_sizes(void)
{
	struct clone3_result r;
	unsigned int n;

	for (n = 0; n < CLONE3_CASES; n++) {
		r = try_clone3(n);
		is(r.error, natively[n], "clone3() with a structure of %s: as natively", r.name);
	}
}

static int count_files(void)
{
	int fd, n = 0;

	for (fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static int exits(void *arg)
{
	_exit(open("/dev/null", O_RDONLY) < 0);
}

static int dies(void *arg)
{
	if (open("/dev/null", O_RDONLY) >= 0)
		kill(getpid(), SIGKILL);
	_exit(1);
}

static int executes(void *arg)
{
	if (open("/dev/null", O_RDONLY) >= 0)
		execl("/bin/true", "true", NULL);
	_exit(1);
}

/* A child that shares the descriptors leaves the one file that it opened. */
static void test_shared_files(int (*child)(void *), int status, const char *what)
{
	static char stack[65536] __attribute__((aligned(16)));
	int before = count_files(), after;
	pid_t pid = clone(child, stack + sizeof(stack),
			  CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, NULL);

	is(wait_for(pid), status, "a child that shares descriptors %s", what);
	after = count_files();
	is(after - before, 1, "files that a child that %s leaves open", what);
}

static void test_exec_ignored(void)
{
	pid_t pid = fork();

	if (!pid) {
		signal(SIGSEGV, SIG_IGN);
		execl("/bin/sh", "sh", "-c", "kill -SEGV $$; exit 6", NULL);
		child_fails("execl() failed");
	}
	is(WEXITSTATUS(wait_for(pid)), 6, "an ignored SIGSEGV survives exec");
	pid = fork();
	if (!pid) {
		signal(SIGSEGV, handler);
		execl("/bin/sh", "sh", "-c", "kill -SEGV $$; exit 6", NULL);
		child_fails("execl() failed");
	}
	is(WTERMSIG(wait_for(pid)), SIGSEGV, "a handled SIGSEGV is the default after exec");
}

static void test_big(void)
{
	size_t i, size = 64 << 20;
	char *p = malloc(size);
	long sum = 0;
	pid_t pid;

	for (i = 0; i < size; i += 4096)
		p[i] = 1;
	pid = fork();
	if (!pid) {
		for (i = 0; i < size; i += 4096)
			p[i]++;
		_exit(p[size - 4096]);
	}
	is(WEXITSTATUS(wait_for(pid)), 2, "copy on write: the child's memory");
	for (i = 0; i < size; i += 4096)
		sum += p[i];
	is(sum, size / 4096, "copy on write: the parent's memory");
	free(p);
}

static void body(void)
{
	test_fork();
	test_vfork();
	test_spawn();
	test_shell();
	test_clone();
	test_clone3_sizes();
	test_shared_files(exits, 0, "exits");
	test_shared_files(dies, SIGKILL, "is killed");
	test_shared_files(executes, 0, "executes a program");
	test_exec_ignored();
	test_big();
}

int main(int argc, char **argv)
{
	unsigned int n;

	for (n = 0; n < CLONE3_CASES; n++)
		natively[n] = try_clone3(n).error;
	return in_all_rings(argc, argv, body);
}
