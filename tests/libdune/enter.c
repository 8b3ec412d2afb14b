// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * dune_enter(): what it takes over from the process (handlers, the alternate
 * stack, threads), and what libc can do afterwards. Fails when a failed dune_enter()
 * leaves something changed, when a function of libc behaves differently in ring 0,
 * when the message of a child that gets no vCPU lacks the error, or when memory is still
 * allocated after children have ended.
 */
#define _GNU_SOURCE
#include <dune.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <linux/dune.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "rings.h"
#include "tap.h"

static volatile int count;
static volatile pthread_t handled_by;
static volatile int handler_ring;
static pthread_t thread;
static volatile int stop;

static void handler(int sig)
{
	(void)sig;
	handled_by = pthread_self();
	handler_ring = ring();
	/* Last: another thread waits for it, and then reads the others. */
	count++;
}

static void *spin(void *arg)
{
	while (!stop)
		usleep(1000);
	return arg;
}

static void test_config(void)
{
	struct dune_config cfg = { .size = sizeof(cfg) };

	cfg.size = 7;
	is(dune_enter(&cfg), -EINVAL, "dune_enter() with a size that is not known: EINVAL");
	cfg.size = sizeof(cfg);
	cfg.flags = 0x80;
	is(dune_enter(&cfg), -EINVAL, "dune_enter() with an unknown flag: EINVAL");
	cfg.flags = 0;
	cfg.reserved[2] = 1;
	is(dune_enter(&cfg), -EINVAL, "dune_enter() with a reserved field: EINVAL");
	cfg.reserved[2] = 0;
	cfg.super_base = 4096;
	is(dune_enter(&cfg), -EINVAL, "dune_enter() with a range that is not aligned: EINVAL");
	is(ring(), 3, "the process is in ring 3 after dune_enter() failed");
	ok(!dune_active(), "dune_active() is false after dune_enter() failed");
}

/* In a child, where all descriptors are used up: an error, nothing changed. */
static void test_failure(void)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		while (dup(0) >= 0)
			;
		if (dune_enter(NULL) != -EMFILE || ring() != 3)
			child_fails("dune_enter() without descriptors is not EMFILE, in ring 3");
		close(0);
		if (dune_enter(NULL) != -EMFILE || ring() != 3)
			child_fails("dune_enter() with one descriptor is not EMFILE, in ring 3");
		signal(SIGUSR2, handler);
		close(3);
		close(4);
		if (dune_enter(NULL) || ring())
			child_fails("dune_enter() with three descriptors failed");
		raise(SIGUSR2);
		if (!count || handler_ring)
			child_fails("a handler set after a failed dune_enter() is not taken over");
		_exit(0);
	}
	waitpid(pid, &status, 0);
	is(status, 0, "without descriptors: EMFILE; with them it works");
}

static void test_taken_over(void)
{
	stack_t ss;

	count = 0;
	handler_ring = 9;
	raise(SIGUSR1);
	is(count, 1, "a signal handler from before dune_enter() runs once");
	is(handler_ring, 0, "a signal handler from before dune_enter() runs in ring 0");
	sigaltstack(NULL, &ss);
	is(ss.ss_size, 70000, "the alternate stack from before dune_enter() is kept");
	count = 0;
	handler_ring = 9;
	pthread_kill(thread, SIGUSR1);
	while (!count)
		usleep(1000);
	ok(pthread_equal(handled_by, thread),
	   "a signal to a native thread is handled by that thread");
	is(handler_ring, 3, "a native thread handles its signal in ring 3");
	stop = 1;
	is(pthread_join(thread, NULL), 0, "a native thread can be joined");
}

/*
 * In a child that has no descriptor left: its own child, which shares the descriptors, cannot
 * open a vCPU. The message of that is on stderr.
 */
__attribute__((noreturn)) static void exhausted(int err)
{
	int status = 0;
	pid_t pid;

	dup2(err, 2);
	while (dup(0) >= 0)
		;
	pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	if (!pid)
		_exit(0);
	waitpid(pid, &status, 0);
	_exit(WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

static void test_message(void)
{
	char said[256] = "";
	int fds[2], status;
	pid_t pid;

	if (pipe(fds))
		bail("pipe: %m");
	pid = fork();
	if (!pid)
		exhausted(fds[1]);
	close(fds[1]);
	waitpid(pid, &status, 0);
	is(WEXITSTATUS(status), SIGKILL, "a child that gets no vCPU is killed");
	/* 24 is EMFILE. */
	if (!ok(read(fds[0], said, sizeof(said) - 1) > 0 &&
		strstr(said, "a child could not enter guest mode (error 24)"),
		"the message has the number of the error"))
		diag("printed: %s", said);
	close(fds[0]);
}

static void at_exit(void)
{
	if (ring())
		child_fails("a function of atexit() does not run in ring 0");
}

static void test_libc(void)
{
	struct timespec a, b;
	char *p = malloc(1 << 20), name[] = "/tmp/dune-enter-XXXXXX";
	struct stat st;
	int fd = mkstemp(name), status;
	pid_t pid;
	FILE *f;

	ok(p && memset(p, 3, 1 << 20) && p[12345] == 3,
	   "malloc() gives memory that keeps what is written");
	free(p);
	f = fdopen(fd, "w+");
	ok(fprintf(f, "%d %s %g\n", 12, "text", 1.5) == 12 && !fclose(f), "stdio writes a file");
	ok(!stat(name, &st) && st.st_size == 12, "stat() shows the size of that file");
	unlink(name);
	clock_gettime(CLOCK_MONOTONIC, &a);
	usleep(2000);
	clock_gettime(CLOCK_MONOTONIC, &b);
	ok((b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec >= 2000000,
	   "usleep() takes as long on the clock as it must");
	ok(getauxval(AT_PAGESZ) == 4096, "the auxiliary vector has the size of a page");
	errno = 0;
	ok(open("/nonexistent", 0) == -1 && errno == ENOENT, "a failed open() sets errno");
	fflush(stdout);
	pid = fork();
	if (!pid) {
		atexit(at_exit);
		exit(21);
	}
	waitpid(pid, &status, 0);
	is(WEXITSTATUS(status), 21, "exit code, after atexit()");
}

static void test_cpu(void)
{
	unsigned int want, cpu, node;
	int i, moves = 0, good = 1;
	cpu_set_t all, set;

	sched_getaffinity(0, sizeof(all), &all);
	for (i = 0; i < 5 * 64; i++) {
		want = i % 64;
		if (!CPU_ISSET(want, &all))
			continue;
		CPU_ZERO(&set);
		CPU_SET(want, &set);
		sched_setaffinity(0, sizeof(set), &set);
		getcpu(&cpu, &node);
		if (cpu != want || sched_getcpu() != (int)want)
			good = 0;
		moves++;
	}
	sched_setaffinity(0, sizeof(all), &all);
	ok(good && moves >= 5, "getcpu after sched_setaffinity, %d times", moves);
}

static int depth;

static void trace(int sig)
{
	void *frames[32];

	(void)sig;
	depth = backtrace(frames, 32);
}

static void test_backtrace(void)
{
	int outside;
	void *frames[32];

	outside = backtrace(frames, 32);
	signal(SIGUSR2, trace);
	raise(SIGUSR2);
	ok(depth > outside + 1, "backtrace() out of a handler: %d frames, %d outside",
	   depth, outside);
}

static void test_leaks(void)
{
	struct dune_stats before, after;
	int i, failed;

	/* The first child may leave memory in use that the next ones use again. */
	failed = !!system("true");
	dune_stats(&before);
	for (i = 0; i < 20; i++)
		failed += !!system("true");
	dune_stats(&after);
	is(failed, 0, "all children exit with status 0");
	is(after.arena_bytes, before.arena_bytes, "twenty children leave no memory in use");
	is(after.forks - before.forks, 20, "dune_stats() counts twenty forks");
	ok(after.counters[DUNE_COUNT_EXITS] > before.counters[DUNE_COUNT_EXITS] &&
	   after.counters[DUNE_COUNT_SYSCALL_FAST] +
	   after.counters[DUNE_COUNT_SYSCALL_SLOW] >=
	   before.counters[DUNE_COUNT_SYSCALL_FAST] +
	   before.counters[DUNE_COUNT_SYSCALL_SLOW] + 20,
	   "dune_stats() counts exits and system calls");
	ok(after.signals >= 2, "dune_stats() counts signals");
}

int main(void)
{
	static char alt[70000];
	stack_t ss = { .ss_sp = alt, .ss_size = sizeof(alt) };

	signal(SIGUSR1, handler);
	sigaltstack(&ss, NULL);
	pthread_create(&thread, NULL, spin, NULL);
	test_config();
	test_failure();
	is(dune_enter(NULL), 0, "dune_enter() succeeds");
	is(ring(), 0, "the process is in ring 0 after dune_enter()");
	ok(dune_active(), "dune_active() is true after dune_enter()");
	is(dune_enter(NULL), 0, "dune_enter() succeeds a second time");
	test_taken_over();
	test_libc();
	test_cpu();
	test_backtrace();
	test_message();
	test_leaks();
	return done();
}
