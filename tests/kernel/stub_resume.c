// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * After a call that the stub has made, the run resumes the one before it and does not load the
 * vCPU again. It does load the vCPU if something may have changed since: after a call that changes
 * what is looked up once for each run, after another vCPU was loaded, when the thread was switched
 * away from, and after a signal. Fails when a run loads the vCPU where it need not, or
 * continues with the old state where it must load it; then the guest would use a TLB tag that
 * another one has, and user mode would get the old base of GS. The loads are counted by a probe
 * on svm_vcpu_load(). VT-x loads the vCPU in each run, so there a probe on vmx_load_regs() counts
 * the runs that take the guest's registers from the run page, as one that resumes does not.
 */
#define _GNU_SOURCE
#include "by_alone.h"
#include "child.h"
#include "cpu.h"
#include "tap.h"
#include "timing.h"
#include "tracing.h"

#include <asm/prctl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALLS	20

/* Loads of each guest: for its first run, and after alone_slow(). */
#define OTHER_LOADS	2

/* What children leave for the parent. */
static volatile struct shared {
	u64 wrong;	/* results */
	u64 handled;	/* signals, or runs of the second vCPU */
	u64 base;
} *shared;

static bool counts;	/* the probe exists */
static int guest_cpu;

static u64 getppids(void *arg)
{
	for (int i = 0; i < CALLS; i++)
		shared->wrong += hypercall0(SYS_getppid) != (long)arg;
	return 0;
}

static u64 prctls(void *arg)
{
	for (int i = 0; i < CALLS; i++)
		shared->wrong += hypercall3(SYS_prctl, PR_GET_DUMPABLE, 0, 0) != (long)arg;
	return 0;
}

static u64 sleeps(void *arg)
{
	static struct timespec short_time = { .tv_nsec = 2000000 };

	for (int i = 0; i < CALLS; i++)
		shared->wrong += hypercall3(SYS_nanosleep, (long)&short_time, 0, 0) != 0;
	return 0;
}

static void take_signal(const struct dune_signal *signal)
{
	shared->handled++;
	alone_unblock(0);
}

/* The signal comes before the call returns to the stub. */
static u64 kills(void *arg)
{
	long pid = hypercall0(SYS_getpid);

	for (int i = 0; i < CALLS; i++) {
		shared->wrong += hypercall3(SYS_kill, pid, SIGUSR1, 0) != 0 || alone_again();
		alone_take();
	}
	return 0;
}

static int first, second;	/* copies of the descriptors of both vCPUs */

/*
 * The stub continues with the second vCPU, whose guest has the stub continue with the first one.
 * The loads for the second one's privileged calls do not depend on what is tested.
 */
static u64 swaps(void *arg)
{
	for (int i = 0; i < CALLS; i++)
		shared->wrong += hypercall3(SYS_dup2, second, alone_guest.fd, 0) !=
				 alone_guest.fd;
	return 0;
}

static u64 swap_back(void *arg)
{
	for (;;) {
		shared->handled++;
		privileged(SYS_dup2, first, alone_guest.fd, 0, 0);
	}
	return 0;
}

static u64 set_gs(void *arg)
{
	static u64 base;

	shared->wrong += hypercall3(SYS_arch_prctl, ARCH_SET_GS, (long)arg, 0) != 0;
	/* Exits after which a saved base would be loaded. */
	for (int i = 0; i < CALLS; i++)
		hypercall0(SYS_getppid);
	hypercall3(SYS_arch_prctl, ARCH_GET_GS, (long)&base, 0);
	shared->base = base;
	return 0;
}

static struct subject {
	const char *name;
	u64 (*fn)(void *arg);
	void *arg;
	int least, most;	/* loads; the host's own interrupts may add some switches */
	bool resumes;		/* the runs resume, also if they load the vCPU */
	u64 handled;
} subjects[] = {
	{ "calls that change nothing", getppids, NULL, 0, 2, true, 0 },
	{ "calls of the module's list", prctls, NULL, CALLS, CALLS + 3, false, 0 },
	{ "calls that switch threads", sleeps, NULL, CALLS, 2 * CALLS + 3, true, 0 },
	{ "calls that a signal follows", kills, NULL, CALLS, CALLS + 3, false, CALLS },
	{ "calls after which another vCPU runs", swaps, NULL, 2 * CALLS, 2 * CALLS + 3, false,
	  CALLS },
	{ "arch_prctl()", set_gs, (void *)0x12345000, 2, 4, false, 0 },
};

static u64 body(void *subject)
{
	const struct subject *s = subject;

	if (s->fn == kills) {
		alone_stack();
		alone_catch(SIGUSR1, 0);
	}
	alone_slow(true);
	return s->fn(s->arg);
}

static void body_in_child(void *arg)
{
	struct subject *s = arg;

	pin_to(guest_cpu);
	if (s->fn == getppids)
		s->arg = (void *)(long)getppid();
	if (s->fn == prctls)
		s->arg = (void *)(long)prctl(PR_GET_DUMPABLE);
	alone_on_signal = take_signal;
	alone_open();
	if (s->fn == swaps) {
		second = alone_second(swap_back, NULL);
		first = dup(alone_guest.fd);
	}
	alone_enter(0, body, s);
}

static void loads(struct subject *s)
{
	bool registers = s->resumes && !is_amd();
	int least = registers ? 0 : s->least, most = registers ? 2 : s->most;
	struct outcome o = { .code = -1 };
	bool good = false;
	int n = 0;

	for (int i = 0; i < 5 && !good; i++) {
		memset((void *)shared, 0, sizeof(*shared));
		trace_clear();
		o = in_child(body_in_child, s, 20);
		n = counts ? trace_count("loaded") - OTHER_LOADS : least;
		/* The two privileged calls before alone_slow(). */
		if (counts && s->fn == kills)
			n -= 2;
		good = !o.code && !shared->wrong && n >= least && n <= most;
	}
	ok(good, "%s: %d to %d loads (%s, %lu wrong, %d)", s->name, least, most,
	   outcome_text(o), shared->wrong, n);
	if (s->handled)
		is(shared->handled, s->handled, "which comes each time");
}

static void remove_probe(void)
{
	trace_write("events/stub/loaded/enable", "0");
	trace_write("kprobe_events", "-:stub/loaded");
}

static void make_probe(void)
{
	atexit(remove_probe);
	counts = trace_mount("kprobe_events") &&
		 !trace_write("kprobe_events", is_amd() ? "p:stub/loaded dune:svm_vcpu_load" :
							   "p:stub/loaded dune:vmx_load_regs") &&
		 !trace_write("events/stub/loaded/enable", "1");
}

int main(void)
{
	begin(120);
	shared = shared_alloc(sizeof(*shared));
	if (!alone_vcpus())
		return done();
	guest_cpu = usable_cpu(0);
	pin_to(usable_cpu(1));
	make_probe();
	if (!counts)
		skip("no kprobe events here", "loads of the vCPU");
	for (unsigned int i = 0; i < sizeof(subjects) / sizeof(subjects[0]); i++)
		loads(&subjects[i]);
	is(shared->base, 0x12345000, "arch_prctl() in the stub sets the base of GS");
	return done();
}
