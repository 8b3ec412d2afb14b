// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Tracing sees a guest's system calls: raw_syscalls:sys_enter and sys_exit,
 * switched on while the guest runs. The module's own tracepoints report entries
 * and exits. Fails when the fast path skips a tracepoint, and when an exit is
 * reported with another reason than the processor's.
 */
#define _GNU_SOURCE
#include "child.h"
#include "cpu.h"
#include "guest.h"
#include "tap.h"
#include "timing.h"
#include "tracing.h"
#include "x86.h"

#include <asm/svm.h>
#include <asm/vmx.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS 25

static struct shared {
	volatile int phase;
	volatile u64 rip;	/* of the hypercall instruction in ring 3 */
	volatile int code;	/* the processor's for the exit by it */
} *shared;

static u64 calls(void *arg)
{
	for (int i = 0; i < 10; i++)
		hypercall0(SYS_getpgrp);
	shared->phase = 1;
	while (shared->phase == 1)
		;
	for (int i = 0; i < CALLS; i++)
		hypercall0(SYS_getpgrp);
	shared->phase = 3;
	while (shared->phase == 3)
		;
	for (int i = 0; i < 10; i++)
		hypercall0(SYS_getpgrp);
	return 0;
}

/* In ring 3 this instruction does not exist. */
static u64 hypercall_in_ring3(void *arg)
{
	if (guest_vmx)
		asm volatile("vmcall" : : "a" (SYS_getpgrp) : "memory");
	else
		asm volatile("vmmcall" : : "a" (SYS_getpgrp) : "memory");
	return 0;
}

/* Trace the events of process @pid alone. */
static void trace_only(int pid)
{
	char text[20];

	snprintf(text, sizeof(text), "%d", pid);
	trace_write("set_event_pid", text);
	trace_clear();
}

static void run_phase(int from, int to)
{
	shared->phase = from;
	while (shared->phase != to)
		sleep_ms(1);
}

/* A guest that makes calls in each phase. */
static int start_guest(void)
{
	int pid = checked_fork();

	if (!pid) {
		struct guest g;

		guest_open(&g);
		_exit(guest_call(&g, calls, NULL) == GUEST_DONE ? 0 : 1);
	}
	while (shared->phase != 1)
		sleep_ms(1);
	return pid;
}

static void trace_calls(void)
{
	ok(!trace_write("events/raw_syscalls/sys_enter/filter", "id == 111") &&
	   !trace_write("events/raw_syscalls/sys_exit/filter", "id == 111"),
	   "the system call tracepoints take a filter");
	ok(!trace_write("events/raw_syscalls/sys_enter/enable", "1") &&
	   !trace_write("events/raw_syscalls/sys_exit/enable", "1"),
	   "the tracepoints are switched on while a guest runs");
	run_phase(2, 3);
	trace_write("events/raw_syscalls/sys_enter/enable", "0");
	trace_write("events/raw_syscalls/sys_exit/enable", "0");

	int enter = trace_count("sys_enter: NR 111"), exit = trace_count("sys_exit: NR 111");

	ok(enter == CALLS, "sys_enter fires for each of %d calls (%d)", CALLS, enter);
	ok(exit == CALLS, "sys_exit fires for each of %d calls (%d)", CALLS, exit);
	trace_write("events/raw_syscalls/sys_enter/filter", "0");
	trace_write("events/raw_syscalls/sys_exit/filter", "0");
}

/* Of the module's own tracepoints, how many kinds have fired. */
static int kinds_traced(void)
{
	DIR *d = opendir(TRACING "events/dune");
	int kinds = 0;

	for (struct dirent *e; d && (e = readdir(d));) {
		char name[300];

		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), " %s:", e->d_name);
		int n = trace_count(name);

		diag("tracepoint %s: %d", e->d_name, n);
		kinds += n > 0;
	}
	if (d)
		closedir(d);
	return kinds;
}

/* The last phase of the guest, at whose end it leaves. */
static void trace_module(int pid)
{
	trace_clear();
	ok(!access(TRACING "events/dune", F_OK), "the module has tracepoints");
	trace_write("events/dune/enable", "1");
	shared->phase = 4;

	struct outcome o = wait_child(pid, 20);

	trace_write("events/dune/enable", "0");
	ok(o.code == 0, "the guest ends normally while it is traced (%s)", outcome_text(o));

	int kinds = kinds_traced();

	ok(kinds >= 3, "at least entry, exit and hypercall were traced (%d kinds)", kinds);
}

/* The trace shows the exit that the processor reports for a hypercall in ring 3. */
static void trace_ring3(void)
{
	char line[100];
	int pid;

	shared->phase = 0;
	pid = checked_fork();
	if (!pid) {
		struct guest g;

		while (!shared->phase)
			sleep_ms(1);
		guest_open(&g);
		if (guest_call3(&g, hypercall_in_ring3, NULL) != GUEST_TRAP)
			child_fails("a hypercall in ring 3 is no trap");
		shared->rip = g.frame->rip;
		shared->code = guest_vmx ? EXIT_REASON_VMCALL : SVM_EXIT_VMMCALL;
		if (g.frame->vector != X86_TRAP_UD)
			child_fails("a hypercall in ring 3 is another exception");
		_exit(0);
	}
	trace_only(pid);
	trace_write("events/dune/dune_exit/enable", "1");
	shared->phase = 1;

	struct outcome o = wait_child(pid, 20);
	int n;

	trace_write("events/dune/dune_exit/enable", "0");
	ok(o.code == 0, "a hypercall in ring 3 is #UD (%s)", outcome_text(o));
	/* SVM has no information about this exit, and leaves its fields undefined. */
	snprintf(line, sizeof(line), " dune_exit: code=0x%x rip=0x%llx %s",
		 shared->code, (unsigned long long)shared->rip,
		 guest_vmx ? "info1=0x0 info2=0x0" : "");
	n = trace_count(line);
	ok(n == 1, "the trace has the exit of a hypercall in ring 3 once (%d):%s", n, line);
}

int main(void)
{
	begin(40);
	shared = shared_alloc(sizeof(*shared));
	if (!trace_mount("events/raw_syscalls")) {
		skip("no tracefs with system call tracepoints", "system call tracepoints");
		return done();
	}

	/*
	 * Both on one CPU: switching a tracepoint on changes code, and
	 * QEMU's TCG lets another one execute it half changed.
	 */
	pin_to(usable_cpu(0));

	int pid = start_guest();

	trace_write("options/record-cmd", "0");	/* patches the scheduler, each time */
	trace_write("tracing_on", "1");
	trace_only(pid);
	trace_calls();
	trace_module(pid);
	trace_ring3();
	trace_write("set_event_pid", "");
	trace_clear();
	return done();
}
