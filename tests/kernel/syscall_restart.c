// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A signal interrupts a guest's system call, on the fast path and on the slow one. Fails when
 * DUNE_RUN reports another way to restart the call than Linux's, when the call does not end
 * with the result that it has natively, when a signal without a handler ends a call, or when a
 * sleep that is continued does not last as long as asked for.
 */
#define _GNU_SOURCE
#include "child.h"
#include "guest.h"
#include "request.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EPOLL	102	/* the descriptor of an epoll instance */

static struct guest g;
static char memory[4096] __attribute__((aligned(4096)));	/* what calls write to */

#define M ((long)memory)

static volatile sig_atomic_t signals;

static void handler(int sig)
{
	signals++;
}

struct blocking {
	struct request request;
	/* dune_run.restart of a fast call that a signal interrupts; 0: rax is -EINTR. */
	int restart;
};

static struct timespec long_time = { 1000, 0 };
static struct pollfd nothing_to_poll = { .fd = PIPE_IN, .events = POLLIN };

static struct blocking blockings[] = {
	{ { "read of an empty pipe", SYS_read, {PIPE_IN, M, 1}, 0 }, ERESTARTSYS },
	{ { "wait4", SYS_wait4, {-1, 0, 0, 0}, 0 }, ERESTARTSYS },
	{ { "futex", SYS_futex, {M + 1024, FUTEX_WAIT, 0, 0}, 0 }, ERESTARTSYS },
	{ { "futex with a timeout", SYS_futex, {M + 1024, FUTEX_WAIT, 0, (long)&long_time}, 0 },
		ERESTART_RESTARTBLOCK },
	{ { "pause", SYS_pause, {0}, 0 }, ERESTARTNOHAND },
	{ { "rt_sigsuspend", SYS_rt_sigsuspend, {M + 1024, 8}, 0 }, ERESTARTNOHAND },
	{ { "nanosleep", SYS_nanosleep, {(long)&long_time, M}, 0 }, ERESTART_RESTARTBLOCK },
	{ { "clock_nanosleep, absolute", SYS_clock_nanosleep,
		{CLOCK_MONOTONIC, TIMER_ABSTIME, (long)&long_time, 0}, 0 }, ERESTARTNOHAND },
	{ { "poll", SYS_poll, {(long)&nothing_to_poll, 1, 1000000}, 0 },
		ERESTART_RESTARTBLOCK },
	{ { "ppoll", SYS_ppoll, {(long)&nothing_to_poll, 1, 0, 0, 0}, 0 }, ERESTARTNOHAND },
	{ { "epoll_wait", SYS_epoll_wait, {EPOLL, M, 1, -1}, 0 }, 0 },
};

/* A signal every @ms: on a busy machine the first may come before the call. */
static void timer(unsigned int ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };
	struct itimerval it = { tv, tv };

	setitimer(ITIMER_REAL, &it, NULL);
}

/* A signal interrupts one call: first on the fast path, then on the slow one. */
static void interrupt_call(struct blocking *b)
{
	memset(memory, 0, sizeof(memory));
	/* The fast path. */
	signals = 0;
	guest_prepare(&g, 0, make_request, &b->request);
	timer(60);
	int end = until_syscall(&g);

	if (b->restart) {
		ok(end == DUNE_EXIT_SYSCALL && (int)g.run->restart == b->restart &&
		   signals >= 1,
		   "%s, interrupted: restart %d (exit %d restart %u signals %d)", b->request.name,
		   b->restart, end, g.run->restart, signals);
		ok(g.run->regs.rax == (u64)b->request.nr,
		   "%s, interrupted: RAX still has the number, to make the call again",
		   b->request.name);
		g.run->regs.rax = -EINTR;
		end = until_syscall(&g);
		ok(end == DUNE_EXIT_HOSTCALL && b->request.result == -EINTR,
		   "%s, interrupted: the call ends with the host half's result (%ld)",
		   b->request.name, b->request.result);
	} else {
		ok(end == DUNE_EXIT_HOSTCALL && b->request.result == -EINTR && signals >= 1,
		   "%s, interrupted: EINTR (exit %d, %ld)", b->request.name, end,
		   b->request.result);
	}

	/* The slow path: the host's own system call and its restart. */
	memset(memory, 0, sizeof(memory));
	signals = 0;
	g.run->flags = DUNE_RUN_SLOW_SYSCALL;
	guest_prepare(&g, 0, make_request, &b->request);
	timer(60);
	enum guest_end ge = guest_resume(&g);

	ok(ge == GUEST_DONE && b->request.result == -EINTR && signals >= 1 &&
	   g.restarts == 0,
	   "%s, slow, interrupted: EINTR (%ld)", b->request.name, b->request.result);
	g.run->flags = 0;
}

/* A signal without a handler (SIGWINCH, SIGCHLD) interrupts no call visibly. */
static void ignored_signal(void)
{
	struct request r = { "read", SYS_read, {PIPE_IN, M, 1}, 0 };
	int self = getpid();
	int pid = checked_fork();

	if (!pid) {
		sleep_ms(50);
		kill(self, SIGWINCH);
		sleep_ms(50);
		(void)!write(PIPE_OUT, "z", 1);
		_exit(0);
	}
	enum guest_end end = guest_call(&g, make_request, &r);

	ok(end == GUEST_DONE && r.result == 1 && memory[0] == 'z',
	   "an ignored signal does not end a read (%ld)", r.result);
	waitpid(pid, NULL, 0);
}

/* The time left of a sleep that restart_syscall continues is right. */
static void restarted_sleep(void)
{
	struct timespec half = { 0, 300000000 };
	struct request sleep = { "nanosleep", SYS_nanosleep, {(long)&half, 0}, 0 };
	struct sigaction ign = { .sa_handler = SIG_DFL };
	int self = getpid();
	int pid;

	sigaction(SIGWINCH, &ign, NULL);
	pid = checked_fork();
	if (!pid) {
		for (int i = 0; i < 5; i++) {
			sleep_ms(30);
			kill(self, SIGWINCH);
		}
		_exit(0);
	}
	unsigned long start = now_us();
	enum guest_end end = guest_call(&g, make_request, &sleep);
	unsigned long took = now_us() - start;

	ok(end == GUEST_DONE && !sleep.result && took >= 300000,
	   "a sleep interrupted five times lasts as long as asked for (%lu us)", took);
	waitpid(pid, NULL, 0);
}

static void interrupted(void)
{
	struct sigaction sa = { .sa_handler = handler };
	int epoll = epoll_create1(0);
	int kid = checked_fork();

	if (!kid) {
		pause();
		_exit(0);
	}
	dup2(epoll, EPOLL);
	sigaction(SIGALRM, &sa, NULL);
	clock_gettime(CLOCK_MONOTONIC, &long_time);
	long_time.tv_sec += 1000;
	for (unsigned int i = 0; i < sizeof(blockings) / sizeof(blockings[0]); i++)
		interrupt_call(&blockings[i]);
	timer(0);
	ignored_signal();
	kill(kid, SIGKILL);
	waitpid(kid, NULL, 0);
	restarted_sleep();
}

int main(void)
{
	begin(120);
	guest_open(&g);
	open_pipe();
	interrupted();
	guest_close(&g);
	return done();
}
