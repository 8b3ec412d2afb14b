// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A signal interrupts a call of a guest without a host half (struct dune_stub), in the module and
 * in the stub, with SA_RESTART and without. Fails when the guest is told anything else than what
 * the same call does natively: to make the call again, or its result. Also fails when a stop, for
 * which there is no handler, ends a call or shortens a sleep.
 */
#define _GNU_SOURCE
#include "by_alone.h"
#include "child.h"
#include "klog.h"
#include "proc.h"
#include "request.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define EPOLL	102	/* the descriptor of an epoll instance */

static char memory[4096] __attribute__((aligned(4096)));	/* what calls write to */

#define M ((long)memory)

static struct timespec long_time = { 1000, 0 }, half = { 0, 500000000 };
static struct pollfd nothing_to_poll = { .fd = PIPE_IN, .events = POLLIN };

static struct request requests[] = {
	{ "read of an empty pipe", SYS_read, { PIPE_IN, M, 1 }, 0 },
	{ "wait4", SYS_wait4, { -1, 0, 0, 0 }, 0 },
	{ "futex", SYS_futex, { M + 1024, FUTEX_WAIT, 0, 0 }, 0 },
	{ "futex with a timeout", SYS_futex, { M + 1024, FUTEX_WAIT, 0, (long)&long_time }, 0 },
	{ "pause", SYS_pause, { 0 }, 0 },
	{ "rt_sigsuspend", SYS_rt_sigsuspend, { M + 1024, 8 }, 0 },
	{ "nanosleep", SYS_nanosleep, { (long)&long_time, M }, 0 },
	{ "clock_nanosleep, absolute", SYS_clock_nanosleep,
	  { CLOCK_MONOTONIC, TIMER_ABSTIME, (long)&long_time, 0 }, 0 },
	{ "poll", SYS_poll, { (long)&nothing_to_poll, 1, 1000000 }, 0 },
	{ "ppoll", SYS_ppoll, { (long)&nothing_to_poll, 1, 0, 0, 0 }, 0 },
	{ "epoll_wait", SYS_epoll_wait, { EPOLL, M, 1, -1 }, 0 },
};

#define REQUESTS	(sizeof(requests) / sizeof(requests[0]))

/* What became of the call. */
static struct shared {
	bool ended;
	bool again;
	long rax;
	u64 mask;
	int signal;
} *shared;

static const struct how {
	const struct request *request;
	u64 flags;	/* of the action */
	bool slow;	/* the call is made in the stub */
} *how;

/* ---- natively */

static void handler(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	const greg_t *r = uc->uc_mcontext.gregs;

	shared->again = !memcmp((void *)r[REG_RIP], "\x0f\x05", 2);
	shared->rax = r[REG_RAX];
	shared->mask = *(u64 *)&uc->uc_sigmask;
	shared->signal = info->si_signo;
	shared->ended = true;
	_exit(0);
}

/* There is a child to wait for. It ends with its parent: prove waits for all that could print. */
static void make_child(void)
{
	if (!checked_fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sleep_ms(time_limit(10000));
		_exit(0);
	}
}

static void natively(void *arg)
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | how->flags };
	const struct request *r = how->request;

	sigfillset(&sa.sa_mask);
	sigaction(SIGUSR1, &sa, NULL);
	raw_syscall(r->nr, r->arg[0], r->arg[1], r->arg[2], r->arg[3], r->arg[4], r->arg[5]);
}

/* ---- in a guest */

static u64 blocked_call(void *arg)
{
	const struct request *r = how->request;

	alone_stack();
	if (how->slow)
		alone_run->flags = DUNE_RUN_SLOW_SYSCALL;
	alone_catch(SIGUSR1, how->flags);
	shared->rax = hypercall(r->nr, r->arg[0], r->arg[1], r->arg[2], r->arg[3], r->arg[4],
				r->arg[5]);
	shared->again = alone_again();
	shared->mask = alone_run->signal.mask;
	shared->signal = (int)alone_run->signal.info[0];
	shared->ended = true;
	return 0;
}

static void in_guest(void *arg)
{
	alone_start(0, blocked_call, NULL);
}

/* ---- both */

/* Waits until the child sleeps in its call: it sleeps nowhere else for so long. */
static bool is_in_call(int pid)
{
	for (int i = 0; i < 6; i++) {
		if (!proc_sleeps(pid))
			return false;
		sleep_ms(2);
	}
	return true;
}

static struct outcome interrupt(void (*fn)(void *arg))
{
	int pid;

	memset(shared, 0, sizeof(*shared));
	pid = checked_fork();
	if (!pid) {
		if (how->request->nr == SYS_wait4)
			make_child();
		fn(NULL);
		_exit(1);
	}
	if (!WAIT_FOR(is_in_call(pid), 10))
		diag("the child does not sleep");
	kill(pid, SIGUSR1);
	return wait_child(pid, 10);
}

static void compare(const struct request *r, u64 flags)
{
	struct how one = { r, flags, false };
	struct shared native;
	struct outcome o;

	how = &one;
	o = interrupt(natively);
	native = *shared;
	if (o.code || !native.ended)
		bail("%s natively: %s", r->name, outcome_text(o));
	for (int slow = 0; slow < 2; slow++) {
		one.slow = slow;
		o = interrupt(in_guest);
		ok(!o.code && shared->ended && shared->again == native.again &&
		   shared->rax == native.rax && shared->mask == native.mask &&
		   shared->signal == native.signal,
		   "%s%s%s: %s (%s, %sRAX %ld, mask %#lx; natively %sRAX %ld, mask %#lx)",
		   r->name, slow ? " in the stub" : "", flags ? ", SA_RESTART" : "",
		   native.again ? "is to be made again" : "has its result", outcome_text(o),
		   shared->again ? "again, " : "", shared->rax, shared->mask,
		   native.again ? "again, " : "", native.rax, native.mask);
	}
}

/* ---- no handler */

static void stop(const struct request *r, bool slow, const char *what)
{
	const struct how one = { r, 0, slow };
	struct outcome o;
	unsigned long before;
	int pid;

	how = &one;
	memset(shared, 0, sizeof(*shared));
	before = now_us();
	pid = checked_fork();
	if (!pid)
		in_guest(NULL);
	if (!WAIT_FOR(is_in_call(pid), 10))
		diag("the child does not sleep");
	kill(pid, SIGSTOP);
	waitpid(pid, NULL, WUNTRACED);
	kill(pid, SIGCONT);
	if (r->nr == SYS_read) {
		WAIT_FOR(is_in_call(pid), 10);
		(void)!write(PIPE_OUT, "z", 1);
	}
	o = wait_child(pid, 20);
	ok(!o.code && shared->ended && !shared->again && shared->rax == (r->nr == SYS_read) &&
	   (r->nr == SYS_read || now_us() - before >= 500000),
	   "a stop %s %s (%s, RAX %ld, %lu us)", what, slow ? "in the stub" : "in the module",
	   outcome_text(o), shared->rax, now_us() - before);
}

int main(void)
{
	struct request sleep = { "nanosleep", SYS_nanosleep, { (long)&half, 0 }, 0 };
	struct epoll_event event = { .events = EPOLLIN };
	struct klog log;
	int fd;

	begin(120);
	klog_begin(&log);
	shared = shared_alloc(sizeof(*shared));
	if (!alone_vcpus())
		return done();
	open_pipe();
	fd = epoll_create1(0);
	dup2(fd, EPOLL);
	epoll_ctl(EPOLL, EPOLL_CTL_ADD, PIPE_IN, &event);
	clock_gettime(CLOCK_MONOTONIC, &long_time);
	long_time.tv_sec += 1000;
	for (unsigned int i = 0; i < REQUESTS; i++) {
		compare(&requests[i], 0);
		compare(&requests[i], SA_RESTART);
	}
	for (int slow = 0; slow < 2; slow++) {
		stop(&sleep, slow, "does not shorten a nanosleep");
		stop(&requests[0], slow, "does not end a read");
	}
	klog_end(&log);
	return done();
}
