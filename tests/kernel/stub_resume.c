// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * After a call that the stub has made, the run resumes the one before it and does not load the
 * vCPU again. It does load the vCPU if something may have changed since: after a call that changes
 * what is looked up once for each run, after another vCPU was loaded, when the thread was switched
 * away from, and at DUNE_STUB_ENTER. Fails when a run loads the vCPU where it need not, or
 * continues with the old state where it must load it; then the guest would use a TLB tag that
 * another one has, and user mode would get the old base of GS. The loads are counted by a probe
 * on svm_vcpu_load(). VT-x loads the vCPU in each run.
 */
#define _GNU_SOURCE
#include "by_stub.h"
#include "child.h"
#include "cpu.h"
#include "rseq.h"
#include "tap.h"
#include "timing.h"
#include "tracing.h"

#include <asm/prctl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALLS	20

static struct guest g, other;
static char *stub;
static bool counts;	/* the probe exists */

static u64 getppids(void *arg)
{
	u64 wrong = 0;

	for (int i = 0; i < CALLS; i++)
		wrong += hypercall0(SYS_getppid) != (long)arg;
	return wrong;
}

static u64 prctls(void *arg)
{
	u64 wrong = 0;

	for (int i = 0; i < CALLS; i++)
		wrong += hypercall3(SYS_prctl, PR_GET_DUMPABLE, 0, 0) != (long)arg;
	return wrong;
}

static u64 sleeps(void *arg)
{
	u64 wrong = 0;

	for (int i = 0; i < CALLS; i++)
		wrong += hypercall3(SYS_nanosleep, (long)arg, 0, 0) != 0;
	return wrong;
}

/* The signal comes before the call returns to the stub. */
static u64 kills(void *arg)
{
	u64 wrong = 0;

	for (int i = 0; i < CALLS; i++)
		wrong += hypercall3(SYS_kill, (long)arg, SIGUSR1, 0) != 0;
	return wrong;
}

static volatile int handled;

static void run_other(int sig)
{
	guest_prepare(&other, 0, guest_return, (void *)1);
	if (guest_resume(&other) == GUEST_DONE)
		handled++;
}

static void run_none(int sig)
{
	handled++;
}

/*
 * Runs fn(arg) by the stub. The vCPU is loaded at least @least times and at most @most times, where
 * the host's own interrupts may add some switches.
 */
static void loads(const char *name, u64 (*fn)(void *arg), void *arg, int least, int most)
{
	enum guest_end end = GUEST_ERROR;
	bool good = false;
	int n = 0;

	for (int i = 0; i < 5 && !good; i++) {
		handled = 0;
		trace_clear();
		end = stub_call(&g, stub, fn, arg);
		n = counts ? trace_count("loaded") : least;
		good = end == GUEST_DONE && !g.value && n >= least && n <= most;
	}
	ok(good, "%s: %d to %d loads (%s, value %lu, %d)", name, least, most,
	   guest_end_name(&g, end), g.value, n);
}

static void with_handler(void (*handler)(int sig))
{
	struct sigaction sa = { .sa_handler = handler };

	sigaction(SIGUSR1, &sa, NULL);
}

static u64 set_gs(void *arg)
{
	long err = hypercall3(SYS_arch_prctl, ARCH_SET_GS, (long)arg, 0);

	/* Exits after which a saved base would be loaded. */
	return (u64)err + getppids((void *)(long)-1) - CALLS;
}

static void gs_base(void)
{
	unsigned long base = 0;
	enum guest_end end = stub_call(&g, stub, set_gs, (void *)0x12345000);

	syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
	syscall(SYS_arch_prctl, ARCH_SET_GS, 0);
	ok(end == GUEST_DONE && !g.value && base == 0x12345000,
	   "arch_prctl() in the stub sets the base of GS (%s, value %lu, %#lx)",
	   guest_end_name(&g, end), g.value, base);
}

/* What user mode writes to the run page meanwhile does not direct the guest. */
static void write_rip(int sig)
{
	handled++;
	g.run->regs.rip = 0x1000;
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
		 !trace_write("kprobe_events", "p:stub/loaded dune:svm_vcpu_load") &&
		 !trace_write("events/stub/loaded/enable", "1");
}

int main(void)
{
	static struct timespec short_time = { .tv_nsec = 2000000 };

	begin(120);
	rseq_drop();
	stub = stub_open(&g);
	guest_open(&other);
	pin_to(usable_cpu(0));
	g.run->flags = DUNE_RUN_SLOW_SYSCALL;
	if (guest_vmx) {
		skip("VT-x loads the vCPU in each run", "loads of the vCPU");
	} else {
		make_probe();
		if (!counts)
			skip("no kprobe events here", "loads of the vCPU");
	}
	loads("calls that change nothing", getppids, (void *)(long)getppid(), 1, 3);
	loads("calls of the module's list", prctls, (void *)(long)prctl(PR_GET_DUMPABLE), CALLS,
	      CALLS + 3);
	loads("calls that switch threads", sleeps, &short_time, CALLS, 2 * CALLS + 3);
	with_handler(run_none);
	loads("calls that are followed by a handler", kills, (void *)(long)getpid(), 1, 3);
	with_handler(run_other);
	loads("calls that are followed by a run of another vCPU", kills, (void *)(long)getpid(),
	      2 * CALLS, 2 * CALLS + 3);
	is(handled, CALLS, "which came each time");
	gs_base();
	if (guest_vmx) {
		skip("VT-x reads the registers in each run", "the run page's registers");
	} else {
		with_handler(write_rip);
		loads("calls during which the run page is written", kills, (void *)(long)getpid(),
		      1, 3);
	}
	return done();
}
