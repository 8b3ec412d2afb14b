// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The frame of a signal lies in the process's memory, and a guest without a host half
 * (struct dune_stub) learns from it what became of its call. A tracer moves the thread to
 * DUNE_STUB_SIGNAL with a frame of its own. Fails when a frame gives a guest that makes a call
 * anything else than what dune.h describes, when a frame changes a register of a guest that makes
 * none, or when the process survives a frame that cannot be read.
 */
#define _GNU_SOURCE
#include "by_alone.h"
#include "child.h"
#include "klog.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile struct shared {
	struct alone_frame frame;
	bool started;
	u64 spins;
	u64 changes;	/* of RAX, or a mark without a call */
	u64 taken;	/* interrupts */
	u64 results;
	long result;
	bool again;
	u64 info, mask, trap, error, cr2, fpstate;
} *shared;

/* ---- in the guest */

static struct timespec long_time = { 1000, 0 };

static void take_signal(const struct dune_signal *signal)
{
	shared->info = signal->info[0] ^ signal->info[15];
	shared->mask = signal->mask;
	shared->trap = signal->trap;
	shared->error = signal->error;
	shared->cr2 = signal->cr2;
	shared->fpstate = signal->fpstate;
	shared->taken++;
}

static long number;

static u64 __attribute__((noreturn)) wait_for_calls(void *arg)
{
	alone_run->flags = DUNE_RUN_SLOW_SYSCALL;
	privileged(SYS_getppid, 0, 0, 0, 0);
	for (;;) {
		shared->started = true;
		shared->result = hypercall3(number, (long)&long_time, 0, 0);
		shared->again = alone_again();
		alone_take();
		shared->results++;
	}
}

#define PATTERN	0x123456789abcdef0UL

static u64 __attribute__((noreturn)) spin(void *arg)
{
	for (;;) {
		u64 n = 10000, rax = PATTERN;

		asm volatile("sti\n1: cmp %2, %0\n jne 2f\n dec %1\n jnz 1b\n2: cli"
			     : "+a"(rax), "+c"(n) : "d"(PATTERN) : "memory", "cc");
		shared->changes += n || rax != PATTERN || alone_again();
		shared->spins++;
		shared->started = true;
	}
}

static void call_in_child(void *arg)
{
	alone_keeps_fpu = false;
	alone_on_signal = take_signal;
	alone_start(0, arg, NULL);
}

/* ---- the tracer */

/* Moves the thread to @place in the stub, with @rsi and @rdx. */
static void move(int pid, char *place, u64 rsi, u64 rdx)
{
	struct user_regs_struct r;
	int status;

	if (ptrace(PTRACE_INTERRUPT, pid, 0, 0) || waitpid(pid, &status, __WALL) != pid ||
	    !WIFSTOPPED(status) || ptrace(PTRACE_GETREGS, pid, 0, &r))
		bail("the thread does not stop: %m");
	r.rip = (u64)place;
	r.rsi = rsi;
	r.rdx = rdx;
	r.orig_rax = -1;
	if (ptrace(PTRACE_SETREGS, pid, 0, &r) || ptrace(PTRACE_CONT, pid, 0, 0))
		bail("the thread cannot be moved: %m");
}

/* To the handler of signals, with the frame at @frame. */
static void forge(int pid, const void *frame, char *stub)
{
	move(pid, stub + DUNE_STUB_SIGNAL, 0, (u64)frame + offsetof(struct alone_frame, uc));
}

static void make_frame(u64 ip, u64 ax)
{
	static u64 n;
	volatile struct alone_frame *f = &shared->frame;

	memset((void *)f, 0, sizeof(*f));
	n++;
	f->uc.ip = ip;
	f->uc.ax = ax;
	f->uc.si = 0x5151;
	f->uc.dx = 0xd0d0;
	f->uc.mask = n << 32;
	f->uc.trapno = n + 1;
	f->uc.err = n + 2;
	f->uc.cr2 = n + 3;
	f->uc.fpstate = n + 4;
	f->info[0] = n + 5;
	f->info[15] = n << 16;
}

static bool is_copied(void)
{
	volatile struct alone_frame *f = &shared->frame;

	return shared->mask == f->uc.mask && shared->trap == f->uc.trapno &&
	       shared->error == f->uc.err && shared->cr2 == f->uc.cr2 &&
	       shared->fpstate == f->uc.fpstate &&
	       shared->info == (f->info[0] ^ f->info[15]);
}

/* The stub of all children is at this place, which the parent has not. */
static int start(void *body, char **stub)
{
	int ends[2], pid;

	memset((void *)shared, 0, sizeof(*shared));
	if (pipe(ends))
		bail("pipe: %m");
	pid = checked_fork();
	if (!pid) {
		alone_on_open = ends[1];
		call_in_child(body);
	}
	close(ends[1]);
	if (read(ends[0], stub, sizeof(*stub)) != sizeof(*stub) ||
	    !WAIT_FOR(shared->started, 10) || ptrace(PTRACE_SEIZE, pid, 0, 0))
		bail("the guest does not start: %m");
	close(ends[0]);
	return pid;
}

static void end(int pid, const char *what)
{
	struct outcome o;

	ptrace(PTRACE_INTERRUPT, pid, 0, 0);
	if (waitpid(pid, NULL, __WALL) == pid)
		ptrace(PTRACE_DETACH, pid, 0, 0);
	kill(pid, SIGKILL);
	o = wait_child(pid, 10);
	ok(o.signal == SIGKILL, "%s: the process continues until it is killed (%s)", what,
	   outcome_text(o));
}

#define RESULT	0x7e57

static const struct place {
	const char *name;
	long offset;	/* in the stub */
	u64 ax;
	bool again;
	long result;	/* 0: the number of the call */
} places[] = {
	{ "at the call", DUNE_STUB_CALL, RESULT, true, 0 },
	{ "at the call, to be continued", DUNE_STUB_CALL, SYS_restart_syscall, true,
	  SYS_restart_syscall },
	{ "after the call", DUNE_STUB_CALL + 2, RESULT, false, RESULT },
	{ "after the result was moved", DUNE_STUB_CALL + 5, RESULT, false, 0x5151 },
	{ "at the entry", DUNE_STUB_ENTER, RESULT, false, 0x5151 },
	{ "at lseek()", DUNE_STUB_ENTER + 5, SYS_lseek, false, 0x5151 },
	{ "at a probe that reads", DUNE_STUB_READ, RESULT, true, 0 },
	{ "after it", DUNE_STUB_READ + 2, RESULT, false, RESULT },
	{ "at a probe that writes", DUNE_STUB_WRITE, RESULT, true, 0 },
	{ "after it", DUNE_STUB_WRITE + 4, RESULT, false, RESULT },
	{ "at the handler", DUNE_STUB_SIGNAL, RESULT, false, 0x5151 },
	{ "elsewhere", 0x12345678, RESULT, false, 0x5151 },
};

#define PLACES	(sizeof(places) / sizeof(places[0]))

static void in_calls(long nr, const char *how)
{
	char *stub;
	int pid;

	number = nr;
	pid = start(wait_for_calls, &stub);
	for (unsigned int i = 0; i < PLACES; i++) {
		const struct place *p = &places[i];
		u64 before = shared->results;

		if (!WAIT_FOR(proc_sleeps(pid), 5))
			bail("the call does not sleep");
		make_frame((u64)stub + p->offset, p->ax);
		forge(pid, (void *)&shared->frame, stub);
		ok(WAIT_FOR(shared->results > before, 5) && shared->again == p->again &&
		   shared->result == (p->result ?: nr) && is_copied(),
		   "a frame %s, during a %s: %s (%#lx%s)", p->name, how,
		   p->again ? "again" : "a result", shared->result,
		   shared->again ? ", again" : "");
	}
	end(pid, how);
}

static void in_plain_code(void)
{
	u64 before;
	char *stub;
	int pid = start(spin, &stub);

	for (unsigned int i = 0; i < PLACES; i++) {
		const struct place *p = &places[i];

		before = shared->taken;
		make_frame((u64)stub + p->offset, p->ax);
		forge(pid, (void *)&shared->frame, stub);
		WAIT_FOR(shared->taken > before, 5);
		before = shared->spins;
		ok(WAIT_FOR(shared->spins > before, 5) && !shared->changes && is_copied(),
		   "a frame %s, during no call, changes nothing (%lu)", p->name,
		   shared->changes);
	}
	move(pid, stub + DUNE_STUB_ENTER, RESULT, DUNE_STUB_RESULT);
	before = shared->spins;
	ok(WAIT_FOR(shared->spins > before + 2, 5) && !shared->changes,
	   "nor does a result of no call (%lu)", shared->changes);
	end(pid, "no call");
}

static void unreadable(void)
{
	struct outcome o;
	char *stub;
	int pid = start(spin, &stub);

	forge(pid, (void *)0x7ffffffff000, stub);
	o = wait_child(pid, 10);
	ok(o.signal == SIGKILL, "a frame that cannot be read kills the process (%s)",
	   outcome_text(o));
	pid = start(spin, &stub);
	forge(pid, (void *)-4096, stub);
	o = wait_child(pid, 10);
	ok(o.signal == SIGKILL, "and so does one in the kernel's memory (%s)", outcome_text(o));
}

int main(void)
{
	struct klog log;

	begin(120);
	klog_begin(&log);
	shared = shared_alloc(sizeof(*shared));
	if (!alone_vcpus())
		return done();
	in_calls(SYS_nanosleep, "call");
	in_calls(DUNE_HOSTCALL | SYS_nanosleep, "privileged call");
	in_plain_code();
	unreadable();
	klog_end(&log);
	return done();
}
