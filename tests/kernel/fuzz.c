// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Random states, random code, random hypercalls and random ioctls. The guests'
 * processes may die of any signal. Fails when the machine, a healthy guest that
 * runs at the same time or the kernel log is affected.
 *
 * A batch is STATES states in one process; its number and FUZZ_SEED (1; 0: the
 * clock) determine every state of it. FUZZ_CHILDREN (240) batches are run,
 * from number FUZZ_FIRST (0) on, or as many as FUZZ_SECONDS allow.
 * FUZZ_SAY=1 prints each batch's number before it begins, so that the log shows
 * which batch crashed the machine. "fuzz.t NUMBER" repeats one batch of FUZZ_SEED
 * alone. fuzz/states.c makes and runs one state; this file has the rest.
 *
 * Three kinds of processes:
 *  - main() counts the endings, and runs the healthy guest in each round;
 *  - one warden for each usable CPU, the init of a PID namespace: it makes the
 *    guest's tables once, and starts a child for each batch. Where the child
 *    ends early, another one continues after the state that ended it;
 *  - the child. Hypercalls with random numbers are real system calls: the child
 *    runs as user nobody in the warden's namespaces with tight limits, so its
 *    random system calls can reach only itself. The warden is root and kills
 *    what a child leaves.
 */
#define _GNU_SOURCE
#include "child.h"
#include "fuzz/states.h"
#include "guest.h"
#include "klog.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STATES	200	/* in a batch */
#define RENEW	64	/* batches in one set of namespaces */
#define WARDENS	8	/* at most */

/*
 * A spinning guest is left by the next signal. Each costs as much as a run
 * and each wait is lost: this interval makes the sum smallest in QEMU.
 */
#define TICK_US	800

/* A state that takes longer has blocked its signals: the child is killed. */
#define STUCK_MS	60	/* for time_limit() */

/* The exit status of a warden, and of the processes between it and the first one. */
enum { WARDEN_DONE, WARDEN_HAS_MORE, WARDEN_KILLED, WARDEN_FOUND };

static struct guest g;
static u8 *code;

/* The counts of a child since it was started, which the warden reads. */
static struct shared {
	u64 next;	/* the state to come, or STATES */
	struct state_counts of;
} *count;

/* The sums over all children, which do not have them mapped (MADV_DONTFORK). */
static struct total {
	u64 next, end;		/* batches */
	u64 deadline;		/* now_us(), or 0 */
	bool say;
	u64 batches, processes, states, runs, reasons[REASONS], errors, ioctls, scribbled, stuck;
} *total;

static u64 seed;

static void tick(int sig)
{
}

static void limit(int what, unsigned long n)
{
	struct rlimit r = { n, n };

	setrlimit(what, &r);
}

/* A vCPU of this process for the guest that the warden made. */
static void adopt_guest(void)
{
	struct guest own;
	int null = open("/dev/null", O_RDWR);

	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	close_range(3, ~0U, 0);
	if (guest_vcpu(&own))
		_exit(1);
	own.mem = g.mem;
	own.state = g.state;
	g = own;
}

/* The states of batch @own from @first on. */
static void child(u64 own, u64 first)
{
	struct itimerval it = { { 0, TICK_US }, { 0, TICK_US } };

	adopt_guest();
	limit(RLIMIT_AS, 256UL << 20);
	limit(RLIMIT_FSIZE, 1 << 20);
	limit(RLIMIT_NPROC, 50);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_CPU, 10);
	(void)!setgroups(0, NULL);
	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		_exit(1);
	signal(SIGALRM, tick);
	setitimer(ITIMER_REAL, &it, NULL);
	states_begin(&g, code, &count->of);
	for (u64 i = first; i < STATES; i++) {
		count->next = i + 1;
		states_run(own ^ mix(i));
	}
	_exit(0);
}

static void add(u64 *to, u64 n)
{
	__atomic_fetch_add(to, n, __ATOMIC_RELAXED);
}

static void add_up(void)
{
	const struct state_counts *c = &count->of;
	bool sane = c->states <= STATES && c->runs <= STATES * STATE_RUNS &&
		    c->errors <= STATES * STATE_RUNS && c->ioctls <= STATES;

	for (int i = 0; i < REASONS; i++)
		sane &= c->reasons[i] <= STATES * STATE_RUNS;
	add(&total->processes, 1);
	if (!sane) {
		add(&total->scribbled, 1);
		return;
	}
	add(&total->states, c->states);
	add(&total->runs, c->runs);
	add(&total->errors, c->errors);
	add(&total->ioctls, c->ioctls);
	for (int i = 0; i < REASONS; i++)
		add(&total->reasons[i], c->reasons[i]);
}

static void show(void)
{
	diag("before state %lu:", count->next);
	states_show(&count->of);
}

/* Waits while the child makes progress, and then kills it. */
static void await(int pid, u64 number)
{
	struct pollfd pfd = { .fd = syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	u64 seen;

	do {
		seen = count->next;
	} while (!poll(&pfd, 1, time_limit(STUCK_MS)) && count->next != seen);
	close(pfd.fd);
	if (waitpid(pid, NULL, WNOHANG) == pid)
		return;
	add(&total->stuck, 1);

	unsigned long began = now_us();

	kill(pid, SIGKILL);
	struct outcome o = wait_child(pid, 20);

	/* A guest that SIGKILL does not end at once keeps its CPU from the kernel. */
	if (o.hung || now_us() - began > time_limit(6) * 1000000UL) {
		diag("batch %lu: a process was killed, and ended after %lu us", number,
		     now_us() - began);
		show();
		_exit(WARDEN_FOUND);
	}
}

static void batch(u64 number)
{
	for (u64 first = 0; first < STATES;) {
		memset(count, 0, sizeof(*count));
		int pid = checked_fork();

		if (!pid)
			child(mix(mix(seed) ^ number), first);
		await(pid, number);
		/* Processes that it has left: this namespace has no others that can be killed. */
		kill(-1, SIGKILL);
		while (waitpid(-1, NULL, 0) > 0)
			;
		add_up();
		first = count->next > first && count->next < STATES ? count->next : STATES;
	}
	add(&total->batches, 1);
}

static bool take(u64 *number)
{
	if (total->deadline && now_us() >= total->deadline)
		return false;
	*number = __atomic_fetch_add(&total->next, 1, __ATOMIC_RELAXED);
	return *number < total->end;
}

/* Returns whether there is more to do, in new namespaces. */
static bool warden(void)
{
	u64 number;

	count = shared_alloc(sizeof(*count));
	madvise(total, sizeof(*total), MADV_DONTFORK);
	guest_open(&g);
	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	for (int i = 0; i < RENEW; i++) {
		if (!take(&number))
			return false;
		if (total->say)
			diag("batch %lu", number);
		batch(number);
	}
	return true;
}

static int exit_status(int pid)
{
	int status;

	if (pid < 0)
		bail("fork: %s", strerror(errno));
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return WARDEN_KILLED;
	return WEXITSTATUS(status);
}

/* A process makes one PID namespace only, of which its first child is the init. */
static void namespaces(void)
{
	if (unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWUTS))
		bail("unshare: %s", strerror(errno));
	int pid = checked_fork();

	if (!pid)
		_exit(warden() ? WARDEN_HAS_MORE : WARDEN_DONE);
	_exit(exit_status(pid));
}

/* One warden after another. */
static void wardens(void)
{
	int status;

	do {
		int pid = checked_fork();

		if (!pid)
			namespaces();
		status = exit_status(pid);
	} while (status == WARDEN_HAS_MORE);
	_exit(status);
}

static const char *warden_end(int status)
{
	switch (WIFEXITED(status) ? WEXITSTATUS(status) : WARDEN_KILLED) {
	case WARDEN_KILLED:
		return "a signal ended it";
	case WARDEN_FOUND:
		return "SIGKILL did not end a guest at once";
	default:
		return "it has bailed out";
	}
}

/* Wait until all wardens have ended. Returns whether they and the healthy guest did well. */
static bool watch(struct guest *health, int *pids, int n)
{
	bool well = true;

	for (u64 round = 0; n; round++) {
		int status, pid = waitpid(-1, &status, WNOHANG);

		if (pid > 0) {
			n--;
			if (status) {
				diag("a warden did not end well: %s", warden_end(status));
				well = false;
			}
		} else {
			sleep_ms(20);
		}
		enum guest_end end = guest_call(health, guest_return, (void *)round);

		if (end != GUEST_DONE || health->value != round) {
			diag("the healthy guest: %s", guest_end_name(health, end));
			well = false;
		}
		if (!well)
			break;
	}
	for (int i = 0; n && pids[i]; i++)
		kill(pids[i], SIGKILL);
	return well;
}

int main(int argc, char **argv)
{
	long seconds = env_number("FUZZ_SECONDS", 0);
	u64 first = env_number("FUZZ_FIRST", 0);
	long children = env_number("FUZZ_CHILDREN", seconds ? LONG_MAX : 240);
	int pids[WARDENS + 1] = { 0 };
	cpu_set_t cpus;
	struct guest health;
	struct klog log;
	bool well;
	int n;

	begin(seconds ? seconds + 120 : 300);
	seed = env_number("FUZZ_SEED", 1) ?: time(NULL) ^ (long)getpid() << 32;
	if (argc > 1) {
		first = strtoull(argv[1], NULL, 0);
		children = 1;
	}
	klog_begin(&log);
	file_write("/proc/sys/debug/exception-trace", "0");
	guest_open(&health);
	total = shared_alloc(sizeof(*total));
	total->next = first;
	total->end = first + children;
	total->deadline = seconds ? now_us() + seconds * 1000000UL : 0;
	total->say = env_number("FUZZ_SAY", 0);
	diag("FUZZ_SEED=%#lx FUZZ_FIRST=%lu", seed, first);
	sched_getaffinity(0, sizeof(cpus), &cpus);
	for (n = 0; n < CPU_COUNT(&cpus) && n < WARDENS && n < children; n++) {
		pids[n] = checked_fork();
		if (!pids[n])
			wardens();
	}

	unsigned long began = now_us();

	well = watch(&health, pids, n);
	ok(well, "%lu states with %lu runs and %lu ioctls in %lu batches left the healthy guest "
	   "and the kernel intact",
	   total->states, total->runs, total->ioctls, total->batches);
	diag("exits: intr %lu, syscall %lu, hostcall %lu, fault %lu, hlt %lu, shutdown %lu, "
	     "invalid %lu, unknown %lu",
	     total->reasons[DUNE_EXIT_INTR], total->reasons[DUNE_EXIT_SYSCALL],
	     total->reasons[DUNE_EXIT_HOSTCALL], total->reasons[DUNE_EXIT_FAULT],
	     total->reasons[DUNE_EXIT_HLT],
	     total->reasons[DUNE_EXIT_SHUTDOWN], total->reasons[DUNE_EXIT_INVALID],
	     total->reasons[DUNE_EXIT_UNKNOWN]);
	diag("DUNE_RUN refused %lu times; %lu processes, of which %lu wrote over their own count "
	     "and %lu were stuck",
	     total->errors, total->processes, total->scribbled, total->stuck);
	diag("%lu ms", (now_us() - began) / 1000);
	/* for tools/suite */
	diag("counts: next=%lu states=%lu runs=%lu ioctls=%lu batches=%lu",
	     total->next < total->end ? total->next : total->end, total->states, total->runs,
	     total->ioctls, total->batches);
	if (argc < 2)
		ok(total->runs > total->batches * 20 &&
		   total->reasons[DUNE_EXIT_SHUTDOWN] + total->reasons[DUNE_EXIT_FAULT] > 0 &&
		   total->scribbled <= total->processes / 2, "the random states were really run");
	klog_end(&log);
	/* The module reports some of the processes that it kills, but few in an hour. */
	ok(log.lines <= 20 + (now_us() - began) / 60000000,
	   "the kernel log hardly grew (%u lines)", log.lines);
	guest_close(&health);
	return done();
}
