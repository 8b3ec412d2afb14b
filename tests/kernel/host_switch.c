// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A guest that is switched out and in while its values are loaded, next to another
 * process on the same CPU, which verifies its own state all the time. Fails when the
 * module leaves one of the guest's registers loaded for the other process, or does not
 * restore one after the run.
 */
#define _GNU_SOURCE
#include "child.h"
#include "host.h"
#include "tap.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct guest g;

/* Stores the name of the first register that has another value in @bad. */
static void neighbour(const char *volatile *bad)
{
	struct host first, now;

	host_read(&first);
	u32 mxcsr = 0x3f80;

	asm volatile("ldmxcsr %0" : : "m"(mxcsr));
	first.mxcsr = mxcsr;
	for (;;) {
		u64 x[2] = { 0x1122334455667788, getpid() }, y[2];

		asm volatile("movups %1, %%xmm7; mov $200, %%ecx\n"
			     "1: pause; dec %%ecx; jnz 1b; movups %%xmm7, %0"
			     : "=m"(y) : "m"(x) : "ecx");
		if (x[0] != y[0] || x[1] != y[1])
			*bad = "XMM7";
		host_read(&now);
		if (host_difference(&first, &now))
			*bad = host_difference(&first, &now);
		sched_yield();
	}
}

static void switched(const char *name, host_load_fn fn,
		     const char *volatile *bad)
{
	struct host_run r;

	*bad = NULL;
	host_run(&g, fn, true, &r);
	/* The FPU's modes are the thread's, in the guest and outside. */
	asm volatile("ldmxcsr %0; fldcw %1" : : "m"(r.before.mxcsr), "m"(r.before.fcw));
	r.after.mxcsr = r.before.mxcsr;
	r.after.fcw = r.before.fcw;

	const char *other = host_difference(&r.before, &r.after);

	ok(!other && r.good, "switched in and out with %s: %s", name,
	   other ? other : "every register has the host's value");
	/* The neighbour is a copy of this process, so its strings have the same addresses. */
	ok(!*bad, "switched in and out with %s: the neighbour's state is its own (%s)", name,
	   *bad ?: "no difference");
}

int main(void)
{
	static const struct {
		const char *name;
		host_load_fn fn;
	} loads[] = {
		{ "segment registers", load_segments }, { "LDTR", load_ldt }, { "TR", load_tr },
		{ "bases", load_bases }, { "system call MSRs", load_syscall_msrs },
		{ "FPU modes", load_fpu_modes }, { "descriptor tables", load_tables },
	};
	const char *volatile *bad;
	int pid;

	host_begin(&g);
	host_open_msrs();
	bad = shared_alloc(4096);
	pid = checked_fork();
	if (!pid)
		neighbour(bad);
	for (unsigned int i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
		switched(loads[i].name, loads[i].fn, bad);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return host_end();
}
