// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Signals of a vCPU without a host half (DUNE_STUB_EVENTS): a storm of them, during calls in the
 * module and in the stub, probes and plain code; and the same while another process overwrites
 * the frames. Fails when a call has a wrong result, when a signal gets lost or changes a register
 * of the guest, or when a forged frame does more than give a call a wrong result.
 */
#define _GNU_SOURCE
#include "by_events.h"
#include "child.h"
#include "cpu.h"
#include "klog.h"
#include "private.h"
#include "random.h"
#include "tap.h"
#include "timing.h"
#include "x86.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define SIGNAL	SIGUSR1
#define SECONDS	4	/* of each storm */

/* What the guest leaves for the parent. */
static volatile struct shared {
	int pid;
	u64 frame;	/* the address of a frame's ucontext */
	u64 taken, sent, forged, calls, again, spins;
	u64 wrong;	/* results of calls */
	u64 lost;	/* what no frame may change: the guest's registers, a mark of no call */
	u64 mask;	/* of the last signal */
	bool stop;
	long result[8];
} *shared;

/* ---- in the guest */

/* The kernel's struct rt_sigframe: a return address, struct ucontext, siginfo_t. */
#define CONTEXT_SIZE	304
#define FRAME_SIZE	(8 + CONTEXT_SIZE + 128)

static void take_signal(const struct dune_signal *signal)
{
	/* The frame is below the FPU registers, at 8 less than a multiple of 16. */
	if (!shared->frame)
		shared->frame = (signal->fpstate - FRAME_SIZE) & -16UL;
	shared->mask = signal->mask;
	shared->taken++;
	event_unblock(0);
}

static u64 once(void *arg)
{
	u64 xmm[2], before[2] = { 0x1122334455667788, 0x99aabbccddeeff00 };
	static u64 mask = 1UL << (SIGUSR2 - 1);

	event_stack();
	event_catch(SIGNAL, 0);
	hypercall(SYS_rt_sigprocmask, SIG_BLOCK, (long)&mask, 0, 8, 0, 0);
	asm volatile("movdqu %0, %%xmm5" : : "m"(before));
	shared->result[0] = hypercall3(SYS_kill, hypercall0(SYS_getpid), SIGNAL, 0);
	shared->result[1] = event_again();
	/* The signal came after the call, and waits. */
	shared->result[2] = hypercall0(SYS_getppid);
	shared->result[3] = event_again();
	shared->result[4] = privileged(SYS_getppid, 0, 0, 0, 0);
	shared->result[5] = event_again();
	shared->result[6] = shared->taken;
	event_take();
	asm volatile("movdqu %%xmm5, %0" : "=m"(xmm));
	shared->result[7] = hypercall0(SYS_getppid);
	shared->wrong = event_again() || memcmp(xmm, before, 16);
	return 0;
}

/* Calls and probes while the signal's interrupt waits, before the guest has read it, and after. */
static u64 meanwhile(void *arg)
{
	static u8 byte;

	event_stack();
	event_catch(SIGNAL, 0);
	hypercall3(SYS_kill, hypercall0(SYS_getpid), SIGNAL, 0);
	shared->result[0] = hypercall0(DUNE_HOSTCALL_NOW | SYS_getppid);
	shared->result[1] = event_again();
	shared->result[2] = hypercall3(DUNE_PROBE_WRITE, (long)&byte, 0, 0);
	shared->result[3] = event_again();
	__atomic_store_n(&event_run->signal.waiting, 0, __ATOMIC_RELAXED);
	shared->result[4] = hypercall3(DUNE_PROBE_WRITE, (long)&byte, 0, 0);
	shared->result[5] = event_again();
	shared->result[6] = hypercall0(SYS_getppid);
	shared->result[7] = event_again();
	event_take();
	return 0;
}

/*
 * A page with a protection key that the thread may access: the kernel's accesses obey PKRU, which
 * a signal's delivery sets to its first value. The guest has no such instructions.
 */
static u64 use_key(void *page)
{
	event_stack();
	event_catch(SIGNAL, 0);
	shared->result[0] = hypercall3(SYS_getrandom, (long)page, 8, 0);
	hypercall3(SYS_kill, hypercall0(SYS_getpid), SIGNAL, 0);
	event_take();
	shared->result[1] = hypercall3(SYS_getrandom, (long)page, 8, 0);
	return 0;
}

static void key_in_child(void *arg)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int key = syscall(SYS_pkey_alloc, 0, 0);

	if (key < 0 || syscall(SYS_pkey_mprotect, page, 4096, PROT_READ | PROT_WRITE, key))
		_exit(CHILD_SKIPS);
	/* Loading the FPU registers would load PKRU, too. */
	event_keeps_fpu = false;
	event_on_signal = take_signal;
	event_start(0, use_key, page);
}

static void keys(void)
{
	struct outcome o;

	memset((void *)shared, 0, sizeof(*shared));
	o = in_child(key_in_child, NULL, 20);
	if (o.code == CHILD_SKIPS)
		skip("no protection keys", "PKRU");
	else
		ok(!o.code && shared->taken == 1 && shared->result[0] == 8 &&
		   shared->result[1] == 8,
		   "a signal does not change the thread's PKRU (%s, %ld, %ld)", outcome_text(o),
		   shared->result[0], shared->result[1]);
}

static void once_in_child(void *arg)
{
	event_on_signal = take_signal;
	event_start(0, once, NULL);
}

static void meanwhile_in_child(void *arg)
{
	event_on_signal = take_signal;
	event_start(0, meanwhile, NULL);
}

static long until_made(long nr, long argument)
{
	long result;

	for (;;) {
		result = hypercall3(nr, argument, 0, 0);
		shared->calls++;
		if (!event_again())
			return result;
		shared->again++;
		/* Whatever the frame has, the number is that of this call. */
		shared->lost += result != nr && result != SYS_restart_syscall;
		event_take();
	}
}

/* Calls of all kinds. Interrupts come between, and in plain code with a value in RAX. */
static u64 storm(void *arg)
{
	static u8 byte;
	u64 seed = 1;

	event_stack();
	event_catch(SIGNAL, SA_RESTART);
	shared->pid = hypercall0(SYS_getpid);
	while (!shared->stop) {
		u64 spins = 2000, rax;

		seed = next_random(seed);
		event_run->flags = seed & 1 ? DUNE_RUN_SLOW_SYSCALL : 0;
		shared->wrong += until_made(SYS_getpid, 0) != shared->pid;
		shared->wrong += until_made(DUNE_HOSTCALL | SYS_getpid, 0) != shared->pid;
		shared->wrong += until_made(DUNE_HOSTCALL_NOW | SYS_getpid, 0) != shared->pid;
		shared->wrong += until_made(DUNE_PROBE_WRITE, (long)&byte) != 0;
		shared->wrong += until_made(DUNE_PROBE_READ, (long)&byte) != 0;
		shared->wrong += until_made(SYS_close, -1) != -EBADF;
		asm volatile("sti\n1: add $3, %%rax\n dec %%rcx\n jnz 1b\n cli"
			     : "=a"(rax), "+c"(spins) : "0"(0) : "memory", "cc");
		shared->lost += rax != 6000;
		shared->lost += event_again();
		shared->spins++;
	}
	return 0;
}

static void storm_in_child(void *arg)
{
	pin_to(usable_cpu(0));
	event_on_signal = take_signal;
	event_start(0, storm, NULL);
}

/* ---- other processes */

static void send_signals(void)
{
	pin_to(usable_cpu(1));
	while (!shared->stop) {
		/* Not while the last one is pending: each is then counted once. */
		if (!kill(shared->pid, SIGNAL))
			shared->sent++;
		for (int i = 0; i < 20 && !shared->stop; i++)
			sched_yield();
	}
	_exit(0);
}

/* Writes numbers that are likely to do harm over a part of the frame. */
static void forge_frames(void)
{
	static u64 forged[FRAME_SIZE / 8];
	u64 seed = 5, stub = (u64)event_stub;

	pin_to(usable_cpu(1));
	while (!shared->stop) {
		struct iovec from = { forged, 0 }, to = { NULL, 0 };
		u64 at, count;

		if (!shared->frame) {
			sched_yield();
			continue;
		}
		for (u64 i = 0; i < FRAME_SIZE / 8; i++) {
			static const u8 places[] = {
				DUNE_STUB_ENTER, DUNE_STUB_CALL, DUNE_STUB_CALL + 2,
				DUNE_STUB_CALL + 5, DUNE_STUB_READ, DUNE_STUB_WRITE,
			};

			seed = next_random(seed);
			forged[i] = seed;
			if (seed & 1)
				forged[i] = (u64)stub + places[(seed >> 8) % sizeof(places)];
			else if (seed & 2)
				forged[i] = seed >> 56;
		}
		seed = next_random(seed);
		at = seed % (FRAME_SIZE / 8);
		count = 1 + (seed >> 20) % (FRAME_SIZE / 8 - at);
		from.iov_len = count * 8;
		to.iov_len = count * 8;
		to.iov_base = (void *)(shared->frame + at * 8);
		if (process_vm_writev(shared->pid, &from, 1, &to, 1, 0) > 0)
			shared->forged++;
	}
	_exit(0);
}

static bool has_ended(int pid)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid;
}

static bool stormy(void (*helper)(void), const char *what)
{
	unsigned long end;
	struct outcome o;
	int forger = 0;
	int sender;
	int child;

	memset((void *)shared, 0, sizeof(*shared));
	child = checked_fork();
	if (!child)
		storm_in_child(NULL);
	if (!WAIT_FOR(shared->spins, 20))
		bail("the guest does not run");
	sender = checked_fork();
	if (!sender)
		send_signals();
	if (helper) {
		forger = checked_fork();
		if (!forger)
			helper();
	}
	end = now_us() + SECONDS * 1000000UL;
	while (now_us() < end && !has_ended(child))
		sleep_ms(20);
	shared->stop = true;
	o = wait_child(child, 20);
	waitpid(sender, NULL, 0);
	if (forger)
		waitpid(forger, NULL, 0);
	diag("%lu signals sent, %lu taken, %lu overwritten; %lu calls, %lu made again, %lu wrong",
	     shared->sent, shared->taken, shared->forged, shared->calls, shared->again,
	     shared->wrong);
	return ok(!o.code && shared->taken > 20 && !shared->lost &&
		  (helper ? shared->forged : !shared->wrong),
		  "%s (%s, %lu signals, %lu wrong results, %lu changes)", what, outcome_text(o),
		  shared->taken, shared->wrong, shared->lost);
}

static void one_signal(void)
{
	struct outcome o;
	int ppid = getpid();

	memset((void *)shared, 0, sizeof(*shared));
	o = in_child(once_in_child, NULL, 20);
	ok(!o.code && !shared->result[0] && !shared->result[1],
	   "a call has its result, although a signal came (%s, %ld)", outcome_text(o),
	   shared->result[0]);
	ok(shared->result[2] == SYS_getppid && shared->result[3] == 1 &&
	   shared->result[4] == (long)(DUNE_HOSTCALL | SYS_getppid) && shared->result[5] == 1,
	   "no call is made while the signal's interrupt waits (%ld, %#lx)", shared->result[2],
	   shared->result[4]);
	ok(!shared->result[6] && shared->taken == 1 && shared->result[7] == ppid,
	   "the interrupt is taken, and the next call is made (%lu, %ld)", shared->taken,
	   shared->result[7]);
	ok(shared->mask == 1UL << (SIGUSR2 - 1) && !shared->wrong,
	   "the guest gets the mask, and the FPU registers (%#lx)", shared->mask);

	memset((void *)shared, 0, sizeof(*shared));
	o = in_child(meanwhile_in_child, NULL, 20);
	ok(!o.code && shared->result[0] == ppid && !shared->result[1],
	   "a call with DUNE_HOSTCALL_NOW is made meanwhile (%s, %ld)", outcome_text(o),
	   shared->result[0]);
	ok(shared->result[2] == (long)DUNE_PROBE_WRITE && shared->result[3] == 1 &&
	   !shared->result[4] && !shared->result[5],
	   "a probe is made when the guest has read the signal (%#lx, %ld)", shared->result[2],
	   shared->result[4]);
	ok(shared->result[6] == SYS_getppid && shared->result[7] == 1 && shared->taken == 1,
	   "the signal's interrupt still waits then (%ld, %lu)", shared->result[6],
	   shared->taken);
}

int main(void)
{
	struct klog log;

	begin(120);
	klog_begin(&log);
	shared = shared_alloc(sizeof(*shared));
	if (!event_vcpus())
		return done();
	one_signal();
	keys();
	stormy(NULL, "signals at any place change nothing");
	event_keeps_fpu = false;
	stormy(forge_frames, "overwritten frames give wrong results at most");
	klog_end(&log);
	return done();
}
