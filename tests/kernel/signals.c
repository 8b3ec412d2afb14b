// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Signals reach a guest wherever it is: spinning with interrupts on or off in both
 * rings, asleep in a fast or slow call, in a fault, stopped; and timers interrupt it.
 * Fails when a signal is not delivered (the child then hangs, is killed, and counts as
 * a failure), when a guest makes progress while it is stopped or none after SIGCONT, or
 * when a timer does not interrupt the guest or ends it.
 */
#define _GNU_SOURCE
#include "child.h"
#include "guest.h"
#include "tap.h"
#include "timing.h"
#include "x86.h"

#include <asm/processor-flags.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static struct shared {
	volatile u64 count;
	volatile int ready;
} *shared;

static u64 spin(void *arg)
{
	shared->ready = 1;
	for (;;)
		shared->count++;
	return 0;
}

static u64 pause_loop(void *arg)
{
	shared->ready = 1;
	for (;;) {
		shared->count++;
		asm volatile("pause");
	}
	return 0;
}

static u64 call_loop(void *arg)
{
	shared->ready = 1;
	for (;;) {
		shared->count++;
		hypercall0(SYS_getppid);
	}
	return 0;
}

static int ends[2];

static u64 blocked_read(void *arg)
{
	char c;

	shared->ready = 1;
	hypercall3(SYS_read, (long)arg, (long)&c, 1);
	for (;;)
		;
	return 0;
}

static u64 fault_loop(void *arg)
{
	volatile char *p = arg;

	shared->ready = 1;
	for (;;) {
		for (int i = 0; i < 64; i++)
			p[i * 4096] = 1;
		hypercall3(SYS_madvise, (long)arg, 64 * 4096, MADV_DONTNEED);
		shared->count++;
	}
	return 0;
}

static u64 touch_one(void *arg)
{
	shared->ready = 1;
	*(volatile char *)arg = 1;
	for (;;)
		;
	return 0;
}

static void *anonymous(unsigned long size)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

enum where {
	SPIN_0, SPIN_0_IF, SPIN_3, SPIN_3_IF, PAUSE, CALLS, CALLS_SLOW, READ, READ_SLOW, FAULTS,
	UFFD, PLACES
};

static const char *const names[] = {
	"spinning in ring 0, IF=0", "spinning in ring 0, IF=1", "spinning in ring 3, IF=0",
	"spinning in ring 3, IF=1", "in a PAUSE loop", "making fast calls", "making slow calls",
	"asleep in a fast call", "asleep in a slow call", "faulting", "waiting for userfaultfd",
};

static void *missing_page(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	void *p = anonymous(4096);
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_register reg = { .range = { (u64)p, 4096 },
				       .mode = UFFDIO_REGISTER_MODE_MISSING };

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg))
		_exit(CHILD_SKIPS);
	return p;
}

static void place(enum where w)
{
	struct guest g;

	guest_open(&g);
	switch (w) {
	case SPIN_0:
		guest_prepare(&g, 0, spin, NULL);
		break;
	case SPIN_0_IF:
		guest_prepare(&g, 0, spin, NULL);
		g.run->regs.rflags |= X86_EFLAGS_IF;
		break;
	case SPIN_3:
		guest_prepare(&g, 3, spin, NULL);
		break;
	case SPIN_3_IF:
		guest_prepare(&g, 3, spin, NULL);
		g.run->regs.rflags |= X86_EFLAGS_IF;
		break;
	case PAUSE:
		guest_prepare(&g, 0, pause_loop, NULL);
		break;
	case CALLS:
	case CALLS_SLOW:
		guest_prepare(&g, 0, call_loop, NULL);
		break;
	case READ:
	case READ_SLOW:
		guest_prepare(&g, 0, blocked_read, (void *)(long)ends[0]);
		break;
	case FAULTS:
		guest_prepare(&g, 0, fault_loop, anonymous(64 * 4096));
		break;
	default:
		guest_prepare(&g, 0, touch_one, missing_page());
		break;
	}
	g.run->flags = w == CALLS_SLOW || w == READ_SLOW ? DUNE_RUN_SLOW_SYSCALL : 0;
	enum guest_end end = guest_resume(&g);

	child_fails("%s: the run ended: %s", names[w], guest_end_name(&g, end));
}

static int start(enum where w)
{
	int pid;

	shared->ready = 0;
	shared->count = 0;
	pid = checked_fork();
	if (!pid)
		place(w);
	WAIT_FOR(shared->ready, 13);
	sleep_ms(5);
	return pid;
}

static void each_state(void)
{
	static const int sigs[] = { SIGKILL, SIGTERM, SIGINT };

	for (int w = 0; w < PLACES; w++) {
		for (int s = 0; s < 3; s++) {
			int pid = start(w);

			kill(pid, sigs[s]);
			struct outcome o = wait_child(pid, 10);

			if (w == UFFD && o.code == CHILD_SKIPS)
				skip("no userfaultfd", "%s: signal %d", names[w], sigs[s]);
			else
				ok(o.signal == sigs[s], "%s: signal %d ends it (%s)", names[w],
				   sigs[s], outcome_text(o));
		}
		int pid = start(w), status = 0;

		kill(pid, SIGSTOP);
		waitpid(pid, &status, WUNTRACED);
		if (w == UFFD && WIFEXITED(status) && WEXITSTATUS(status) == CHILD_SKIPS) {
			skip("no userfaultfd", "%s: stop", names[w]);
			continue;
		}
		ok(WIFSTOPPED(status), "%s: SIGSTOP stops it", names[w]);
		u64 count = shared->count;

		sleep_ms(20);
		ok(shared->count == count, "%s: it makes no progress while it is stopped",
		   names[w]);
		kill(pid, SIGCONT);
		waitpid(pid, &status, WCONTINUED);
		ok(WIFCONTINUED(status), "%s: SIGCONT continues it", names[w]);
		if (w != READ && w != READ_SLOW && w != UFFD)
			ok(WAIT_FOR(shared->count > count, 8),
			   "%s: it makes progress after SIGCONT", names[w]);
		kill(pid, SIGSTOP);
		waitpid(pid, &status, WUNTRACED);
		kill(pid, SIGKILL);
		struct outcome o = wait_child(pid, 10);

		ok(o.signal == SIGKILL, "%s: SIGKILL ends it while it is stopped (%s)", names[w],
		   outcome_text(o));
	}
}

static struct guest g;
static volatile int handled;

static void handler(int sig)
{
	handled++;
}

static void timers(void)
{
	struct sigaction sa = { .sa_handler = handler };
	struct itimerval it = { { 0, 5000 }, { 0, 5000 } };
	struct itimerval off = {0};

	/* The host half's handler runs and the guest continues. */
	sigaction(SIGALRM, &sa, NULL);
	sigaction(SIGVTALRM, &sa, NULL);
	guest_prepare(&g, 0, spin, NULL);
	handled = 0;
	setitimer(ITIMER_REAL, &it, NULL);
	u64 last = shared->count;
	bool moved = true;

	while (handled < 50) {
		int before = handled;
		int err = guest_run(&g);

		if (err && err != -EINTR)
			break;
		if (handled == before && !err && g.run->exit_reason != DUNE_EXIT_INTR)
			break;
		moved &= shared->count >= last;
		last = shared->count;
	}
	setitimer(ITIMER_REAL, &off, NULL);
	ok(handled >= 50 && moved && g.run->exit_reason == DUNE_EXIT_INTR,
	   "a timer interrupts the guest 50 times, and the guest continues (%d)", handled);
	handled = 0;
	setitimer(ITIMER_VIRTUAL, &it, NULL);
	unsigned long start = now_us();

	/* ITIMER_REAL alone ends five runs within a quarter of a second. */
	while (handled < 5 && now_us() - start < time_limit(5) * 1000000UL) {
		struct itimerval wake = { .it_value = { 0, 50000 } };

		setitimer(ITIMER_REAL, &wake, NULL);
		guest_run(&g);
	}
	setitimer(ITIMER_VIRTUAL, &off, NULL);
	setitimer(ITIMER_REAL, &off, NULL);
	ok(handled >= 5, "ITIMER_VIRTUAL and ITIMER_REAL interrupt the guest (%d signals)",
	   handled);
}

int main(void)
{
	begin(220);
	shared = shared_alloc(sizeof(*shared));
	if (pipe(ends))
		bail("pipe: %m");
	each_state();
	guest_open(&g);
	timers();
	return done();
}
