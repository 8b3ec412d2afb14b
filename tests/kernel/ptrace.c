// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A debugger sees and decides every system call of a guest: number, arguments and
 * results, also when it attaches while the guest runs, and with PTRACE_SYSEMU. It reads
 * and writes the memory, stops and kills the guest. Fails when a call is made that the
 * tracer did not see, or with another number, argument or result than the tracer left;
 * when a tracer cannot attach to, stop, continue or kill a guest that spins or makes
 * calls; or when the guest does not see what the tracer wrote to its memory. The module
 * must return the calls of a traced thread to the host half.
 */
#define _GNU_SOURCE
#include "child.h"
#include "guest.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static struct shared {
	volatile int go, running;
	volatile long result[20];
	volatile long calls;
} *shared;

static u64 ten_calls(void *arg)
{
	for (int i = 0; i < 10; i++)
		shared->result[i] = hypercall(SYS_getpriority, 0x1000 + i, 2, 3, 4, 5, 6);
	return 0;
}

static void traced(struct guest *g)
{
	guest_open(g);
	guest_call(g, ten_calls, NULL);		/* untraced: fast */
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	guest_call(g, ten_calls, NULL);
	_exit(7);
}

static int wait_stop(int pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFSTOPPED(status) ? WSTOPSIG(status) : -1;
}

static u64 endless_calls(void *arg)
{
	shared->running = 1;
	while (shared->go == 0) {
		hypercall0(SYS_getppid);
		shared->calls++;
	}
	for (int i = 0; i < 8; i++)
		shared->result[i] = hypercall0(SYS_getppid);
	return 0;
}

static u64 spin(void *arg)
{
	shared->running = 1;
	while (!shared->go)
		;
	shared->result[0] = 4711;
	return 0;
}

static int start(u64 (*fn)(void *arg))
{
	int pid;

	shared->go = 0;
	shared->running = 0;
	shared->calls = 0;
	pid = checked_fork();
	if (!pid) {
		struct guest g;

		guest_open(&g);
		_exit(guest_call(&g, fn, NULL) == GUEST_DONE ? 8 : 9);
	}
	while (!shared->running)
		sleep_ms(1);
	sleep_ms(20);
	return pid;
}

static void every_call(void)
{
	struct guest g;
	struct __ptrace_syscall_info info;
	int entries = 0, exits = 0, in_order = 1, sig, pid = checked_fork();

	if (!pid)
		traced(&g);
	ok(wait_stop(pid) == SIGSTOP, "the traced child stops");
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	bool mine = false;

	for (;;) {
		ptrace(PTRACE_SYSCALL, pid, 0, 0);
		sig = wait_stop(pid);
		if (sig != (SIGTRAP | 0x80))
			break;
		ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info);
		if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
			mine = info.entry.nr == SYS_getpriority;
			if (!mine)
				continue;
			if (info.entry.args[0] != 0x1000u + entries || info.entry.args[1] != 2 ||
			    info.entry.args[2] != 3 || info.entry.args[3] != 4 ||
			    info.entry.args[4] != 5 || info.entry.args[5] != 6)
				in_order = 0;
			entries++;
			if (entries == 3)	/* another call in its place */
				ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.orig_rax),
				       SYS_getpid);
			if (entries == 4)	/* no call */
				ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.orig_rax),
				       -1L);
		} else if (info.op == PTRACE_SYSCALL_INFO_EXIT && mine) {
			exits++;
			if (exits == 6)
				ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.rax),
				       4242L);
		}
	}
	ok(entries == 10 && exits == 10,
	   "each of 10 calls of the guest stops it twice (%d entries, %d exits)", entries, exits);
	ok(in_order, "each stop shows the call's number and six arguments");
	ok(sig == -1, "the traced child ends after its calls");
	ok(shared->result[1] == -EINVAL, "untouched results pass (%ld)", shared->result[1]);
	ok(shared->result[2] == pid, "a number changed by the tracer is the call made (%ld)",
	   shared->result[2]);
	ok(shared->result[3] == -ENOSYS, "a call skipped by the tracer is not made (%ld)",
	   shared->result[3]);
	ok(shared->result[5] == 4242, "a result changed by the tracer arrives (%ld)",
	   shared->result[5]);
}

/*
 * SYSEMU: the tracer makes the calls of the guest, and lets the ioctl that runs the
 * guest pass. Returns how many it has made.
 */
static int emulate_calls(int pid)
{
	int emulated = 0;
	enum __ptrace_request how = PTRACE_SYSEMU;

	for (int i = 0; i < 400 && emulated < 4; i++) {
		ptrace(how, pid, 0, 0);
		int sig = wait_stop(pid);

		if (sig != (SIGTRAP | 0x80)) {
			diag("stopped by %d", sig);
			break;
		}
		struct user_regs_struct regs;

		ptrace(PTRACE_GETREGS, pid, 0, &regs);
		if (regs.orig_rax == SYS_getppid) {
			regs.rax = 900 + emulated;
			emulated += how == PTRACE_SYSEMU;
			ptrace(PTRACE_SETREGS, pid, 0, &regs);
		} else if (how == PTRACE_SYSEMU && regs.orig_rax == SYS_ioctl) {
			/* SYSEMU skipped the ioctl: repeat it and let it run. */
			regs.rip -= 2;
			regs.rax = regs.orig_rax;
			ptrace(PTRACE_SETREGS, pid, 0, &regs);
			how = PTRACE_SYSCALL;	/* its entry */
			continue;
		}
		if (how == PTRACE_SYSCALL) {
			/* Run the ioctl; it returns with the guest's next call. */
			ptrace(PTRACE_SYSCALL, pid, 0, 0);
			if (wait_stop(pid) != (SIGTRAP | 0x80))
				break;
			how = PTRACE_SYSEMU;
		}
	}
	return emulated;
}

static void attach(void)
{
	struct __ptrace_syscall_info info;
	int pid = start(endless_calls), seen = 0;

	ok(!ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACESYSGOOD),
	   "a tracer attaches to a guest that makes calls");
	ptrace(PTRACE_INTERRUPT, pid, 0, 0);
	ok(wait_stop(pid) == SIGTRAP, "PTRACE_INTERRUPT stops a guest that makes calls");

	long calls = shared->calls;

	sleep_ms(30);
	ok(shared->calls == calls, "a guest makes no call while the tracer has it stopped");
	for (int i = 0; i < 200; i++) {
		ptrace(PTRACE_SYSCALL, pid, 0, 0);
		if (wait_stop(pid) != (SIGTRAP | 0x80))
			break;
		ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info);
		seen += info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == SYS_getppid;
	}
	long made = shared->calls - calls;

	ok(seen > 20 && made <= seen + 1 && made >= seen - 1,
	   "the tracer sees every call after it attached (%d seen, %ld made)", seen, made);

	shared->go = 1;
	int emulated = emulate_calls(pid);

	ptrace(PTRACE_DETACH, pid, 0, 0);
	struct outcome o = wait_child(pid, 20);

	ok(o.code == 8, "the guest runs to its end after the tracer detached (%s)",
	   outcome_text(o));
	/* The loop of calls before these may have got the first result. */
	long first = shared->result[0];

	ok(emulated == 4 && (first == 900 || first == 901) && shared->result[1] == first + 1 &&
	   shared->result[2] == first + 2,
	   "PTRACE_SYSEMU: the tracer's results are the guest's (%d: %ld, %ld, %ld)",
	   emulated, first, shared->result[1], shared->result[2]);
}

static void control(void)
{
	int pid = start(spin);
	struct user_regs_struct regs;
	int one = 1;
	struct iovec here = { &one, sizeof(one) }, there = { (void *)&shared->go, sizeof(one) };

	ok(!ptrace(PTRACE_SEIZE, pid, 0, 0), "a tracer attaches to a guest that spins");
	ptrace(PTRACE_INTERRUPT, pid, 0, 0);
	ok(wait_stop(pid) == SIGTRAP, "PTRACE_INTERRUPT stops a guest that spins");
	ok(!ptrace(PTRACE_GETREGS, pid, 0, &regs) && (regs.cs & 3) == 3,
	   "the registers of a stopped guest are those of its host half (rip %#llx)", regs.rip);
	ptrace(PTRACE_CONT, pid, 0, 0);
	sleep_ms(30);
	ok(process_vm_writev(pid, &here, 1, &there, 1, 0) == 4,
	   "the memory of a guest that spins can be written");
	struct outcome o = wait_child(pid, 20);

	ok(o.code == 8 && shared->result[0] == 4711,
	   "a guest sees what was written to its memory while it spins (%s)", outcome_text(o));

	pid = start(spin);
	ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_EXITKILL);
	ptrace(PTRACE_INTERRUPT, pid, 0, 0);
	wait_stop(pid);
	kill(pid, SIGKILL);
	o = wait_child(pid, 20);
	ok(o.signal == SIGKILL, "a stopped tracee can be killed (%s)", outcome_text(o));

	/* The end of a tracer kills its tracee (PTRACE_O_EXITKILL), also one that spins. */
	pid = start(spin);
	int tracer = checked_fork();

	if (!tracer) {
		ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_EXITKILL);
		_exit(0);
	}
	wait_child(tracer, 20);
	o = wait_child(pid, 20);
	ok(o.signal == SIGKILL, "a guest dies with its tracer where that was asked for (%s)",
	   outcome_text(o));
}

int main(void)
{
	begin(40);
	shared = shared_alloc(sizeof(*shared));
	every_call();
	attach();
	control();
	return done();
}
