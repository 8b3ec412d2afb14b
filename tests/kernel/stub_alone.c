// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A vCPU without a host half (struct dune_stub). Fails when a rule of dune.h does not hold: about
 * nested faults, which are raised in the guest; calls that the stub makes for ring 0 of the guest;
 * the stub's descriptor; processes that the guest makes; what ends the process; or the interface.
 */
#define _GNU_SOURCE
#include "by_alone.h"
#include "child.h"
#include "klog.h"
#include "private.h"
#include "tap.h"
#include "timing.h"
#include "x86.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What children leave for the parent. */
static struct shared {
	long count;
	u64 vector, error, cr2, rip, address, flags;
	long result[64];
	bool again[64];
} *shared;

/* ---- faults */

/* The instruction after an access; the code of the three accesses is below. */
extern const char fault_read[], fault_write[], fault_fetch[], after_fault[];

asm("	.globl	fault_read, fault_write, fault_fetch, after_fault\n"
"fault_read:	movb	(%rdi), %al\n"
"after_fault:	ret\n"
"fault_write:	movb	$1, (%rdi)\n"
"	ret\n"
"fault_fetch:	jmp	*%rdi\n");

static void record_fault(struct guest_frame *frame, u64 cr2)
{
	shared->count++;
	shared->vector = frame->vector;
	shared->error = frame->error;
	shared->cr2 = cr2;
	shared->rip = frame->rip;
	shared->address = alone_run->fault_address;
	shared->flags = alone_run->fault_flags;
	frame->rip = (u64)after_fault;
}

static const struct access {
	const char *name;
	const void *code;
	unsigned int ring;
	bool private;	/* at a guest-physical address where no private memory is */
	u64 error;
} accesses[] = {
	{ "a read", fault_read, 0, false, 0 },
	{ "a write", fault_write, 0, false, X86_PF_WRITE },
	{ "a fetch", fault_fetch, 0, false, X86_PF_INSTR },
	{ "a read in ring 3", fault_read, 3, false, X86_PF_USER },
	{ "a write in ring 3", fault_write, 3, false, X86_PF_USER | X86_PF_WRITE },
	{ "a fetch in ring 3", fault_fetch, 3, false, X86_PF_USER | X86_PF_INSTR },
	{ "a read of no private memory", fault_read, 0, true, 0 },
	{ "a write in ring 3 to no private memory", fault_write, 3, true,
	  X86_PF_USER | X86_PF_WRITE },
};

static void *hole;

static u64 make_access(void *arg)
{
	const struct access *a = arg;
	u64 to = a->private ? PRIVATE_AT + (1 << 20) : (u64)hole, ignored;

	asm volatile("call *%[code]" : "=a"(ignored) : [code] "r"(a->code), "D"(to) : "memory");
	return 0;
}

static void access_in_child(void *arg)
{
	const struct access *a = arg;

	alone_on_fault = record_fault;
	alone_start(a->ring, make_access, arg);
}

static void faults(void)
{
	for (unsigned int i = 0; i < sizeof(accesses) / sizeof(accesses[0]); i++) {
		const struct access *a = &accesses[i];
		struct outcome o;
		u64 rip, flags = 0;

		memset(shared, 0, sizeof(*shared));
		o = in_child(access_in_child, (void *)a, 20);
		rip = a->code == fault_fetch ? (u64)hole : (u64)a->code;
		if (a->error & X86_PF_WRITE)
			flags |= DUNE_FAULT_WRITE;
		if (a->error & X86_PF_INSTR)
			flags |= DUNE_FAULT_EXEC;
		if (a->private)
			flags |= DUNE_FAULT_GUEST;
		ok(!o.code && shared->count == 1 && shared->vector == X86_TRAP_PF &&
		   shared->error == (a->error | X86_PF_PROT | DUNE_PF_NESTED) &&
		   shared->rip == rip && shared->address == shared->cr2 &&
		   (a->private ? shared->cr2 % (2 << 20) == 1 << 20 :
				 shared->cr2 == (u64)hole) && shared->flags == flags,
		   "%s where nothing is raises #PF (%s, %ld times, error %#lx, CR2 %#lx, flags %#lx)",
		   a->name, outcome_text(o), shared->count, shared->error, shared->cr2,
		   shared->flags);
	}
}

/* ---- calls by the guest's ring 0 */

static const struct call {
	const char *name;
	long nr, arg[4];
	long wanted;	/* of the privileged call */
} calls[] = {
	{ "rt_sigaction", SYS_rt_sigaction, { 100, 0, 0, 8 }, -EINVAL },
	{ "sigaltstack", SYS_sigaltstack, { 1 }, -EFAULT },
	{ "rseq", SYS_rseq, { 0, 1 }, -EINVAL },
	{ "clone", SYS_clone, { CLONE_THREAD }, -EINVAL },
	{ "clone3", SYS_clone3, { 0, 64 }, -EFAULT },
	{ "ptrace", SYS_ptrace, { PTRACE_CONT, -1 }, -ESRCH },
	{ "prctl(PR_SET_SYSCALL_USER_DISPATCH)", SYS_prctl,
	  { PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF }, 0 },
	{ "DUNE_RUN", SYS_ioctl, { 0, DUNE_RUN }, -EINVAL },
};

#define CALLS	((int)(sizeof(calls) / sizeof(calls[0])))

static u64 make_calls(void *arg)
{
	for (int i = 0; i < CALLS; i++) {
		const struct call *c = &calls[i];
		long first = c->nr == SYS_ioctl ? alone_guest.fd : c->arg[0];

		shared->result[i] = hypercall3(c->nr, first, c->arg[1], c->arg[2]);
		shared->result[i + 32] = privileged(c->nr, first, c->arg[1], c->arg[2],
						    c->arg[3]);
	}
	shared->result[24] = hypercall0(DUNE_HOSTCALL | SYS_getppid);
	shared->result[25] = hypercall0(DUNE_PROBE_READ | 1);
	shared->result[26] = hypercall0(DUNE_PROBE_WRITE + 1);
	shared->result[27] = hypercall0(-1);
	shared->result[28] = hypercall0(DUNE_HOSTCALL | 0xffffffff);
	shared->result[29] = hypercall0(5000);
	shared->result[30] = hypercall0(DUNE_IGNORED_SIGNALS);
	shared->count = alone_again();
	return 0;
}

static void calls_in_child(void *arg)
{
	for (int sig = 1; sig <= 64; sig++)
		signal(sig, SIG_DFL);
	signal(SIGHUP, SIG_IGN);
	signal(64, SIG_IGN);
	alone_start(0, make_calls, arg);
}

/* A hypercall is #UD in ring 3, whatever its number is. */
static u64 call_in_ring3(void *arg)
{
	return hypercall0(DUNE_HOSTCALL | SYS_getppid) == 0;
}

static void skip_hypercall(struct guest_frame *frame, u64 cr2)
{
	shared->vector = frame->vector;
	frame->rip += 3;
	frame->rax = 0;
}

static void ring3_in_child(void *arg)
{
	alone_on_fault = skip_hypercall;
	alone_start(3, call_in_ring3, arg);
}

static void privileged_calls(void)
{
	struct outcome o;

	memset(shared, 0, sizeof(*shared));
	o = in_child(calls_in_child, NULL, 20);
	ok(!o.code && !shared->count, "a guest makes calls (%s)", outcome_text(o));
	for (int i = 0; i < CALLS; i++)
		ok(shared->result[i] == -EPERM && shared->result[i + 32] == calls[i].wanted,
		   "%s is refused, and made as a privileged call (%ld, %ld)", calls[i].name,
		   shared->result[i], shared->result[i + 32]);
	is(shared->result[24], getpid(), "a privileged call has its result");
	ok(shared->result[25] == -ENOSYS && shared->result[26] == -ENOSYS &&
	   shared->result[27] == -ENOSYS && shared->result[28] == -ENOSYS &&
	   shared->result[29] == -ENOSYS,
	   "other numbers give ENOSYS (%ld, %ld, %ld, %ld, %ld)", shared->result[25],
	   shared->result[26], shared->result[27], shared->result[28], shared->result[29]);
	ok((u64)shared->result[30] == (1ULL << (SIGHUP - 1) | 1ULL << 63),
	   "the signals that the process ignores (%#lx)", shared->result[30]);
	o = in_child(ring3_in_child, NULL, 20);
	ok(o.code == 1 && shared->vector == X86_TRAP_UD,
	   "a privileged call in ring 3 is #UD (%s, vector %lu)", outcome_text(o), shared->vector);
}

/* ---- the stub's descriptor */

static u64 move(void *arg)
{
	shared->result[0] = hypercall3(SYS_dup, alone_guest.fd, 0, 0);
	shared->result[1] = hypercall3(DUNE_STUB_MOVE, shared->result[0], 0, 0);
	shared->result[2] = hypercall3(SYS_close, alone_guest.fd, 0, 0);
	shared->result[3] = privileged(SYS_getppid, 0, 0, 0, 0);
	return 0;
}

static void move_in_child(void *arg)
{
	alone_start(0, move, NULL);
}

static u64 move_to_other_file(void *arg)
{
	hypercall3(DUNE_STUB_MOVE, (long)arg, 0, 0);
	shared->count = 1;
	return 0;
}

static void move_away_in_child(void *arg)
{
	alone_start(0, move_to_other_file, arg);
}

static void descriptor(void)
{
	struct outcome o;

	memset(shared, 0, sizeof(*shared));
	o = in_child(move_in_child, NULL, 20);
	ok(!o.code && shared->result[0] > 0 && !shared->result[1] && !shared->result[2] &&
	   shared->result[3] == getpid(),
	   "the stub uses another descriptor of the vCPU (%s, %ld, %ld, %ld, %ld)",
	   outcome_text(o), shared->result[0], shared->result[1], shared->result[2],
	   shared->result[3]);
	for (long fd = -1; fd <= 0; fd++) {
		o = in_child(move_away_in_child, (void *)fd, 20);
		ok(o.signal == SIGILL && !shared->count,
		   "descriptor %ld, which is none of a vCPU, ends the process (%s)", fd,
		   outcome_text(o));
	}
}

/* ---- processes that the guest makes */

static const struct making {
	const char *name;
	long nr;
	u64 flags;
	bool catches;	/* SIGILL */
	bool framed;	/* the kernel writes a frame on the parent's alternate stack */
	int signal;	/* that ends the child */
} makings[] = {
	{ "fork()", SYS_fork, 0, false, false, SIGILL },
	{ "clone()", SYS_clone, SIGCHLD, false, false, SIGILL },
	{ "vfork()", SYS_vfork, 0, false, false, SIGILL },
	{ "vfork() with a handler", SYS_vfork, 0, true, true, SIGILL },
	{ "clone(CLONE_VM)", SYS_clone, CLONE_VM | SIGCHLD, false, false, SIGILL },
};

static u64 make_process(void *arg)
{
	const struct making *m = arg;
	char *stack = alone_stack();
	static int status;

	if (m->catches)
		alone_catch(SIGILL, 0);
	shared->result[0] = privileged(m->nr, m->flags, 0, 0, 0);
	shared->result[1] = hypercall(SYS_wait4, -1, (long)&status, __WALL, 0, 0, 0);
	shared->result[2] = status;
	for (int i = 0; i < ALONE_STACK_SIZE; i++)
		shared->count += stack[i] != 0;
	return 0;
}

static void make_in_child(void *arg)
{
	alone_start(0, make_process, arg);
}

static u64 make_thread(void *arg)
{
	privileged(SYS_clone, CLONE_VM | CLONE_SIGHAND | CLONE_THREAD, 0, 0, 0);
	for (;;)
		privileged(SYS_pause, 0, 0, 0, 0);
	return 0;
}

static void thread_in_child(void *arg)
{
	alone_start(0, make_thread, NULL);
}

static void processes(void)
{
	struct outcome o;

	for (unsigned int i = 0; i < sizeof(makings) / sizeof(makings[0]); i++) {
		const struct making *m = &makings[i];

		memset(shared, 0, sizeof(*shared));
		o = in_child(make_in_child, (void *)m, 20);
		ok(!o.code && shared->result[0] > 0 && shared->result[1] == shared->result[0] &&
		   WTERMSIG(shared->result[2]) == m->signal && !shared->count == !m->framed,
		   "the process that %s makes dies, its parent continues (%s, %ld, %ld, %#lx, %ld bytes)",
		   m->name, outcome_text(o), shared->result[0], shared->result[1],
		   shared->result[2], shared->count);
	}
	o = in_child(thread_in_child, NULL, 20);
	ok(o.signal == SIGILL, "a thread that the guest makes ends the process (%s)",
	   outcome_text(o));
}

/* ---- what ends the process */

static u64 halt(void *arg)
{
	asm volatile("hlt");
	return 0;
}

static u64 shut_down(void *arg)
{
	struct { u16 limit; u64 base; } __attribute__((packed)) none = { 0 };

	asm volatile("lidt %0\n ud2" : : "m"(none));
	return 0;
}

/* The stack of the exception is where nothing is. */
static u64 fault_in_delivery(void *arg)
{
	alone_guest.mem->tss.ist[0] = (u64)hole + 4096;
	asm volatile("ud2");
	return 0;
}

static u64 bad_flags(void *arg)
{
	alone_run->flags = ~0U;
	privileged(SYS_getppid, 0, 0, 0, 0);
	return 0;
}

static u64 with_rseq(void *arg)
{
	static u64 area[8] __attribute__((aligned(32)));

	privileged(SYS_rseq, (long)area, 32, 0, 0x53053053);
	return 0;
}

static const struct ending {
	const char *name;
	u64 (*fn)(void *arg);
} endings[] = {
	{ "HLT", halt },
	{ "a triple fault", shut_down },
	{ "a fault while an exception is delivered", fault_in_delivery },
	{ "a flag that the run page does not have", bad_flags },
	{ "rseq", with_rseq },
	{ "a state that the processor refuses", NULL },
};

static void end_in_child(void *arg)
{
	const struct ending *e = arg;

	alone_start(0, e->fn, NULL);
}

static void refused_in_child(void *arg)
{
	struct dune_stub argument;
	struct dune_state s;

	alone_open();
	guest_prepare(&alone_guest, 0, guest_return, NULL);
	s = alone_guest.state;
	s.cs.attributes = CS_LONG_AND_32BIT;
	if (guest_set_state(&alone_guest, &s) ||
	    alone_bind(&argument, 0, ALONE_VECTOR))
		child_fails("no guest");
	stub_enter(alone_stub, alone_guest.fd);
}

static void ends(void)
{
	for (unsigned int i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		const struct ending *e = &endings[i];
		struct outcome o = in_child(e->fn ? end_in_child : refused_in_child, (void *)e, 20);

		ok(o.signal == SIGKILL, "%s kills the process (%s)", e->name, outcome_text(o));
	}
}

/* ---- the interface */

static void interface_in_child(void *arg)
{
	struct dune_stub argument;
	int at = 0;

	alone_open();
	guest_prepare(&alone_guest, 0, guest_return, NULL);
	shared->result[at++] = alone_bind(&argument, 0, 31);
	shared->result[at++] = alone_bind(&argument, 0, 256);
	shared->result[at++] = alone_bind(&argument, 0, 0);
	shared->result[at++] = alone_bind(&argument, DUNE_STUB_TEMPLATE << 1, ALONE_VECTOR);
	alone_stub += 4096;
	shared->result[at++] = alone_bind(&argument, 0, ALONE_VECTOR);
	alone_stub -= 4096;
	argument.reserved = 1;
	argument.address = (u64)alone_stub;
	shared->result[at++] = ioctl(alone_guest.fd, DUNE_SET_STUB, &argument) ? -errno : 0;
	/* None of these has bound it. */
	shared->result[at++] = alone_bind(&argument, 0, ALONE_VECTOR);
	shared->address = argument.run;
	shared->result[at++] = alone_bind(&argument, 0, ALONE_VECTOR);
	shared->result[at++] = guest_run(&alone_guest);
	shared->result[at++] = mmap(NULL, 4096, PROT_READ, MAP_SHARED, alone_guest.fd, 0) ==
			       MAP_FAILED ? -errno : 0;
	_exit(0);
}

static void mapped_in_child(void *arg)
{
	struct dune_stub argument;

	alone_open();
	guest_prepare(&alone_guest, 0, guest_return, NULL);
	mmap(NULL, 4096, PROT_READ, MAP_SHARED, alone_guest.fd, 0);
	shared->result[0] = alone_bind(&argument, 0, ALONE_VECTOR);
	/* It was not bound at all, so it runs: the first access is a fault. */
	shared->result[1] = guest_run_to_exit(&alone_guest);
	_exit(0);
}

static void interface(void)
{
	static const struct {
		const char *name;
		long wanted;
	} steps[] = {
		{ "a vector below 32", -EINVAL }, { "a vector above 255", -EINVAL },
		{ "no vector", -EINVAL }, { "an unknown flag", -EINVAL },
		{ "no stub there", -EINVAL }, { "a reserved field", -EINVAL },
		{ "the right argument", 0 }, { "the same again", -EBUSY },
		{ "DUNE_RUN", -EINVAL }, { "mmap() of the run page", -EBUSY },
	};
	struct outcome o;

	memset(shared, 0, sizeof(*shared));
	o = in_child(interface_in_child, NULL, 20);
	ok(!o.code && !(shared->address & 4095),
	   "DUNE_SET_STUB returns the place of the run page (%s, %#lx)", outcome_text(o),
	   shared->address);
	for (unsigned int i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		is(shared->result[i], steps[i].wanted, "DUNE_SET_STUB: %s", steps[i].name);
	o = in_child(mapped_in_child, NULL, 20);
	ok(!o.code && shared->result[0] == -EBUSY && !shared->result[1],
	   "a run page that was mapped cannot be hidden (%ld, then %ld)", shared->result[0],
	   shared->result[1]);
}

int main(void)
{
	struct klog log;

	begin(120);
	klog_begin(&log);
	shared = shared_alloc(sizeof(*shared));
	hole = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!alone_vcpus())
		return done();
	interface();
	faults();
	privileged_calls();
	descriptor();
	processes();
	ends();
	klog_end(&log);
	return done();
}
