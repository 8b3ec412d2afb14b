// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program with seccomp filters of its own, natively, in ring 0 and in ring 3: filters that
 * permit, deny and trap calls, and signals that interrupt a call that a filter permits. Fails
 * when a call has another result than natively, or when the handler of SIGSYS does not see
 * the call or cannot set its result.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include "filter.h"
#include "rings.h"
#include "tap.h"

static volatile int signals, trapped;

static void deny(void)
{
	filter_call(SYS_getppid, SECCOMP_RET_ERRNO | 123, 0);
	if (syscall(SYS_getppid) != -1 || errno != 123)
		child_fails("the call was not denied with the filter's errno");
	if (syscall(SYS_getpid) <= 0)
		child_fails("another call was denied");
}

static void on_sigsys(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	trapped = info->si_syscall;
	if (uc->uc_mcontext.gregs[REG_RAX] != SYS_getppid)
		child_fails("RAX is not the number of the trapped call");
	uc->uc_mcontext.gregs[REG_RAX] = 777;
}

static void trap(void)
{
	struct sigaction action = { .sa_sigaction = on_sigsys, .sa_flags = SA_SIGINFO };

	sigaction(SIGSYS, &action, NULL);
	filter_call(SYS_getppid, SECCOMP_RET_TRAP, 0);
	for (int i = 0; i < 3; i++) {
		trapped = 0;
		if (syscall(SYS_getppid) != 777)
			child_fails("the handler could not set the call's result");
		if (trapped != SYS_getppid)
			child_fails("SIGSYS has another number");
	}
}

static void kill_by_filter(void)
{
	filter_call(SYS_getppid, SECCOMP_RET_KILL_PROCESS, 0);
	syscall(SYS_getppid);
}

static void on_alarm(int sig)
{
	signals++;
}

static void set_timer(int flags)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = flags };
	struct itimerval timer = { { 0, 0 }, { 0, 50000 } };

	signals = 0;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
}

/* read() of a pipe to which a child writes after the signal. */
static long interrupted_read(int flags)
{
	int p[2];
	char c;

	if (pipe(p))
		child_fails("pipe() failed");
	pid_t pid = fork();

	if (!pid) {
		poll(NULL, 0, 200);
		_exit(write(p[1], "x", 1) != 1);
	}
	set_timer(flags);
	long n = read(p[0], &c, 1);
	int error = errno;

	waitpid(pid, NULL, 0);
	return n < 0 ? -error : n;
}

static void interrupt(void)
{
	struct timespec half = { 0, 500000000 }, before, after;

	filter_call(SYS_getppid, SECCOMP_RET_ERRNO | 123, 0);
	if (interrupted_read(0) != -EINTR || !signals)
		child_fails("read() was not interrupted");
	if (interrupted_read(SA_RESTART) != 1 || !signals)
		child_fails("read() was not restarted");
	set_timer(0);
	if (poll(NULL, 0, 2000) != -1 || errno != EINTR || !signals)
		child_fails("poll() was not interrupted");
	/* A stop interrupts the call without a handler, and it waits for the rest of the time. */
	clock_gettime(CLOCK_MONOTONIC, &before);
	pid_t self = getpid(), pid = fork();

	if (!pid) {
		poll(NULL, 0, 50);
		kill(self, SIGSTOP);
		poll(NULL, 0, 50);
		_exit(kill(self, SIGCONT));
	}
	if (nanosleep(&half, NULL))
		child_fails("a stop interrupted nanosleep()");
	clock_gettime(CLOCK_MONOTONIC, &after);
	if ((after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec <
	    half.tv_nsec)
		child_fails("nanosleep() was too short");
	waitpid(pid, NULL, 0);
}

static int in_child_of(void (*what)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		what();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	return status;
}

static void body(void)
{
	is(in_child_of(deny), 0, "a filter denies a call");
	is(in_child_of(trap), 0, "a filter traps, and the handler sets the call's result");
	is(in_child_of(interrupt), 0, "signals interrupt calls that a filter permits");
	is(WTERMSIG(in_child_of(kill_by_filter)), SIGSYS, "a filter kills the process");
}

int main(int argc, char **argv)
{
	return in_all_rings(argc, argv, body);
}
