// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Signals of a vCPU without a host half (struct dune_stub): a storm of them, during calls in the
 * module and in the stub, probes and plain code; and the same while another process overwrites
 * the frames. Fails when a call has a wrong result, when a signal gets lost, comes twice or changes
 * a register of the guest or its thread's PKRU, or when a forged frame does more than give a call
 * a wrong result.
 */
#define _GNU_SOURCE
#include "by_alone.h"
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
#include <sys/ptrace.h>
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
	bool enough;	/* no more signals */
	bool stop;
	long result[8];
} *shared;

/* ---- in the guest */

static void take_signal(const struct dune_signal *signal)
{
	/* The frame is below the FPU registers, at 8 less than a multiple of 16. */
	if (!shared->frame)
		shared->frame = (signal->fpstate - sizeof(struct alone_frame)) & -16UL;
	shared->mask = signal->mask;
	shared->taken++;
	alone_unblock(0);
}

static u64 once(void *arg)
{
	u64 xmm[2], before[2] = { 0x1122334455667788, 0x99aabbccddeeff00 };
	static u64 mask = 1UL << (SIGUSR2 - 1);

	alone_stack();
	alone_catch(SIGNAL, 0);
	hypercall(SYS_rt_sigprocmask, SIG_BLOCK, (long)&mask, 0, 8, 0, 0);
	asm volatile("movdqu %0, %%xmm5" : : "m"(before));
	shared->result[0] = hypercall3(SYS_kill, hypercall0(SYS_getpid), SIGNAL, 0);
	shared->result[1] = alone_again();
	/* The signal came after the call, and waits. */
	shared->result[2] = hypercall0(SYS_getppid);
	shared->result[3] = alone_again();
	shared->result[4] = privileged(SYS_getppid, 0, 0, 0, 0);
	shared->result[5] = alone_again();
	shared->result[6] = shared->taken;
	alone_take();
	asm volatile("movdqu %%xmm5, %0" : "=m"(xmm));
	shared->result[7] = hypercall0(SYS_getppid);
	shared->wrong = alone_again() || memcmp(xmm, before, 16);
	return 0;
}

/* Calls and probes while the signal's interrupt waits, before the guest has read it, and after. */
static u64 meanwhile(void *arg)
{
	static u8 byte;

	alone_stack();
	alone_catch(SIGNAL, 0);
	hypercall3(SYS_kill, hypercall0(SYS_getpid), SIGNAL, 0);
	shared->result[0] = hypercall0(DUNE_HOSTCALL_NOW | SYS_getppid);
	shared->result[1] = alone_again();
	shared->result[2] = hypercall3(DUNE_PROBE_WRITE, (long)&byte, 0, 0);
	shared->result[3] = alone_again();
	__atomic_store_n(&alone_run->signal.waiting, 0, __ATOMIC_RELAXED);
	shared->result[4] = hypercall3(DUNE_PROBE_WRITE, (long)&byte, 0, 0);
	shared->result[5] = alone_again();
	shared->result[6] = hypercall0(SYS_getppid);
	shared->result[7] = alone_again();
	alone_take();
	return 0;
}

/*
 * A page with a protection key that the thread may access: the kernel's accesses obey PKRU, which
 * a signal's delivery sets to its first value. The guest has no such instructions.
 */
static u64 use_key(void *page)
{
	alone_stack();
	alone_catch(SIGNAL, 0);
	shared->result[0] = hypercall3(SYS_getrandom, (long)page, 8, 0);
	hypercall3(SYS_kill, hypercall0(SYS_getpid), SIGNAL, 0);
	alone_take();
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
	alone_keeps_fpu = false;
	alone_on_signal = take_signal;
	alone_start(0, use_key, page);
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

/* Both of these are calls that change PKRU, and during which the tracer sends a signal. */

static u64 allocate_key(void *page)
{
	alone_stack();
	alone_catch(SIGNAL, 0);
	shared->result[0] = hypercall0(SYS_pkey_alloc);
	shared->result[1] = alone_again();
	alone_take();
	if (hypercall(SYS_pkey_mprotect, (long)page, 4096, PROT_READ | PROT_WRITE,
		      shared->result[0], 0, 0))
		return 1;
	shared->result[2] = hypercall3(SYS_getrandom, (long)page, 8, 0);
	return 0;
}

static u64 make_execute_only(void *page)
{
	alone_stack();
	alone_catch(SIGNAL, 0);
	shared->result[0] = hypercall3(SYS_mprotect, (long)page, 4096, PROT_EXEC);
	shared->result[1] = alone_again();
	alone_take();
	/* The call reads a mask from the page. */
	shared->result[2] = hypercall(SYS_rt_sigprocmask, SIG_BLOCK, (long)page, 0, 8, 0, 0);
	return 0;
}

static void wrpkru(u32 value)
{
	asm volatile(".byte 0x0f, 0x01, 0xef" : : "a"(value), "c"(0), "d"(0) : "memory");
}

static const struct keyed_call {
	const char *name;
	long nr;
	u64 (*fn)(void *page);
	bool permits;	/* all keys are permitted at first */
	long wanted;	/* of the call after it */
} keyed_calls[] = {
	{ "pkey_alloc()", SYS_pkey_alloc, allocate_key, false, 8 },
	{ "mprotect() to execute-only memory", SYS_mprotect, make_execute_only, true, -EFAULT },
};

static void keyed_child(const struct keyed_call *k)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int key = syscall(SYS_pkey_alloc, 0, 0);

	if (key < 0)
		_exit(CHILD_SKIPS);
	syscall(SYS_pkey_free, key);
	wrpkru(k->permits ? 0 : 0x55555554);
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	alone_on_signal = take_signal;
	alone_start(0, k->fn, page);
}

/*
 * Sends the signal when @pid, which has set its action, begins a call of number @nr. Returns the
 * status with which @pid has ended.
 */
static int signal_in_call(int pid, long nr)
{
	struct __ptrace_syscall_info info;
	int status, signal = 0;
	bool catches = false, sent = false;

	waitpid(pid, &status, 0);
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
	while (WIFSTOPPED(status)) {
		ptrace(PTRACE_SYSCALL, pid, 0, signal);
		if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
			break;
		signal = 0;
		if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
			signal = WSTOPSIG(status);
			continue;
		}
		ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info);
		if (info.op != PTRACE_SYSCALL_INFO_ENTRY)
			continue;
		if (info.entry.nr == SYS_rt_sigaction && info.entry.args[0] == SIGNAL)
			catches = true;
		if (catches && !sent && info.entry.nr == (u64)nr)
			sent = !kill(pid, SIGNAL);
	}
	return status;
}

static void keys_in_calls(void)
{
	for (unsigned int i = 0; i < sizeof(keyed_calls) / sizeof(keyed_calls[0]); i++) {
		const struct keyed_call *k = &keyed_calls[i];
		int pid, status;

		memset((void *)shared, 0, sizeof(*shared));
		pid = checked_fork();
		if (!pid)
			keyed_child(k);
		status = signal_in_call(pid, k->nr);
		if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_SKIPS) {
			skip("no protection keys", "PKRU, changed by %s", k->name);
			continue;
		}
		ok(!status && shared->taken == 1 && shared->result[0] >= 0 &&
		   !shared->result[1] && shared->result[2] == k->wanted,
		   "a signal during %s leaves what it has done to PKRU (%#x, %lu taken, %ld, %ld)",
		   k->name, status, shared->taken, shared->result[0], shared->result[2]);
	}
}

static void once_in_child(void *arg)
{
	alone_on_signal = take_signal;
	alone_start(0, once, NULL);
}

static void meanwhile_in_child(void *arg)
{
	alone_on_signal = take_signal;
	alone_start(0, meanwhile, NULL);
}

static long until_made(long nr, long argument)
{
	long result;

	for (;;) {
		result = hypercall3(nr, argument, 0, 0);
		shared->calls++;
		if (!alone_again())
			return result;
		shared->again++;
		/* Whatever the frame has, the number is that of this call. */
		shared->lost += result != nr && result != SYS_restart_syscall;
		alone_take();
	}
}

/* Calls of all kinds. Interrupts come between, and in plain code with a value in RAX. */
static u64 storm(void *arg)
{
	static u8 byte;
	u64 seed = 1;

	alone_stack();
	alone_catch(SIGNAL, SA_RESTART);
	shared->pid = hypercall0(SYS_getpid);
	while (!shared->stop) {
		u64 spins = 2000, rax;

		seed = next_random(seed);
		alone_run->flags = seed & 1 ? DUNE_RUN_SLOW_SYSCALL : 0;
		shared->wrong += until_made(SYS_getpid, 0) != shared->pid;
		shared->wrong += until_made(DUNE_HOSTCALL | SYS_getpid, 0) != shared->pid;
		shared->wrong += until_made(DUNE_HOSTCALL_NOW | SYS_getpid, 0) != shared->pid;
		shared->wrong += until_made(DUNE_PROBE_WRITE, (long)&byte) != 0;
		shared->wrong += until_made(DUNE_PROBE_READ, (long)&byte) != 0;
		shared->wrong += until_made(SYS_close, -1) != -EBADF;
		asm volatile("sti\n1: add $3, %%rax\n dec %%rcx\n jnz 1b\n cli"
			     : "=a"(rax), "+c"(spins) : "0"(0) : "memory", "cc");
		shared->lost += rax != 6000;
		shared->lost += alone_again();
		shared->spins++;
	}
	return 0;
}

static void storm_in_child(void *arg)
{
	pin_to(usable_cpu(0));
	alone_on_signal = take_signal;
	alone_start(0, storm, NULL);
}

/* ---- other processes */

/*
 * Each signal is sent when the guest has taken the one before, since two that are pending at once
 * would become one. Exits with 1 if the guest does not take one.
 */
static void send_signals(void)
{
	unsigned long limit = time_limit(5) * 1000000UL;

	pin_to(usable_cpu(1));
	while (!shared->enough) {
		u64 before = shared->taken;
		unsigned long start = now_us();

		if (kill(shared->pid, SIGNAL))
			_exit(2);
		shared->sent++;
		while (shared->taken == before) {
			if (now_us() - start > limit)
				_exit(1);
			sched_yield();
		}
		for (int i = 0; i < 20 && !shared->enough; i++)
			sched_yield();
	}
	_exit(0);
}

#define WORDS	(sizeof(struct alone_frame) / 8)

/* Writes numbers that are likely to do harm over a part of the frame. */
static void forge_frames(void)
{
	static u64 forged[WORDS];
	u64 seed = 5, stub = (u64)alone_stub;

	pin_to(usable_cpu(1));
	while (!shared->stop) {
		struct iovec from = { forged, 0 }, to = { NULL, 0 };
		u64 at, count;

		if (!shared->frame) {
			sched_yield();
			continue;
		}
		for (u64 i = 0; i < WORDS; i++) {
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
		at = seed % WORDS;
		count = 1 + (seed >> 20) % (WORDS - at);
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

static void stormy(void (*helper)(void), const char *what)
{
	unsigned long end;
	struct outcome o, sending;
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
	while (now_us() < end && !has_ended(child) && !has_ended(sender))
		sleep_ms(20);
	shared->enough = true;
	sending = wait_child(sender, 20);
	shared->stop = true;
	o = wait_child(child, 20);
	if (forger)
		waitpid(forger, NULL, 0);
	diag("%lu signals sent, %lu taken, %lu overwritten; %lu calls, %lu made again, %lu wrong",
	     shared->sent, shared->taken, shared->forged, shared->calls, shared->again,
	     shared->wrong);
	ok(!sending.code && shared->taken == shared->sent && shared->taken > 20,
	   "%s: each signal is taken once (%s, %lu of %lu)", what, outcome_text(sending),
	   shared->taken, shared->sent);
	ok(!o.code && !shared->lost && (helper ? shared->forged : !shared->wrong),
	   "%s: nothing else happens (%s, %lu wrong results, %lu changes)", what,
	   outcome_text(o), shared->wrong, shared->lost);
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
	if (!alone_vcpus())
		return done();
	one_signal();
	keys();
	keys_in_calls();
	stormy(NULL, "signals at any place");
	alone_keeps_fpu = false;
	stormy(forge_frames, "overwritten frames");
	klog_end(&log);
	return done();
}
