// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The host half: an ordinary Linux thread that runs its vCPU again and again.
 * Between two runs it does the work that the guest cannot do: system calls that the
 * kernel does not make for the guest directly, page faults of the process that
 * need a signal, fork.
 *
 * The host half uses neither FPU registers nor libc: the guest's FPU registers
 * and TLS are live while it runs.
 */
#include "fork.h"
#include "host.h"
#include "special.h"

static bool at_lstar(const struct dune_regs *r)
{
	return r->rip == (u64)dune_calls.lstar_call;
}

static bool at_forward(const struct dune_regs *r)
{
	return r->rip == (u64)dune_calls.forward_call ||
	       r->rip == (u64)dune_calls.forward_tf_call;
}

/*
 * Returns whether the guest would take the signal interrupt before it does anything
 * else if this hypercall ended now. SYSCALL cleared IF: the flags that count are
 * those to which its entry returns.
 */
static bool can_interrupt(const struct dune_regs *r)
{
	if (at_lstar(r))
		return r->r11 & RFLAGS_IF;
	return at_forward(r) || (r->rflags & RFLAGS_IF);
}

/* Sets up the registers so that the program's handler runs first, and then the call again. */
static void again(struct dune_thread *t, struct dune_regs *r)
{
	if (at_forward(r)) {
		r->rax = DUNE_AGAIN;
		t->call_again = 1;
	} else if (at_lstar(r)) {
		r->rax = (u32)r->rax;
		r->rcx -= DUNE_SYSCALL_LENGTH;
	} else {
		r->rip -= HYPERCALL_LENGTH;	/* with interrupts on */
	}
}

/*
 * The kernel interrupted a call for a signal, and a handler of the program waits.
 * Returns whether the call is restarted after the handler (signal(7)). With ERESTARTNOHAND and
 * ERESTART_RESTARTBLOCK it is not.
 */
static bool restarts(const struct dune_thread *t, u32 restart)
{
	return restart == ERESTARTNOINTR ||
	       (restart == ERESTARTSYS && (t->queue[0].action.flags & SA_RESTART));
}

/*
 * Makes the guest's call. Returns its result, or DUNE_AGAIN if a signal with a handler came
 * before it and the guest can run the handler.
 */
static long guest_call(struct dune_thread *t, long nr, const struct dune_regs *r)
{
	if (!can_interrupt(r))
		return sys6(nr, r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9);
	return dune_host_syscall(t, nr, r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9);
}

/* Makes a call that waits with the signal mask at @mask. */
static long masked_call(struct dune_thread *t, long nr, const struct dune_regs *r, u64 mask)
{
	const u64 *set = (const u64 *)mask;
	long ret;

	if (set && dune_host_readable(t, set, SIGSET_SIZE)) {
		t->temp_mask = *set & ~UNBLOCKABLE;
		WRITE_ONCE(t->temp_mask_on, 1);
	}
	ret = guest_call(t, nr, r);
	WRITE_ONCE(t->temp_mask_on, 0);
	return ret;
}

/* Returns the address of the mask, from { address, size } at @pair, or 0. */
static u64 mask_in(struct dune_thread *t, u64 pair)
{
	const u64 *p = (const u64 *)pair;

	return p && dune_host_readable(t, p, 16) ? p[0] : 0;
}

static long exec_call(struct dune_thread *t, long nr, const struct dune_regs *r)
{
	long ret;

	dune_actions_ignore_for_exec(t);
	ret = guest_call(t, nr, r);
	dune_actions_handle_again(t);
	return ret;
}

/*
 * Ends the thread, unless a signal came before that whose handler the guest can run: then this
 * returns DUNE_AGAIN. A process's first thread keeps its block: all that it has ends with the
 * process, and the block of a vfork child is freed by its parent.
 */
static long exit_call(struct dune_thread *t, long nr, const struct dune_regs *r)
{
	u64 all = ~0ULL;

	if (sys3(__NR_gettid, 0, 0, 0) == sys3(__NR_getpid, 0, 0, 0))
		return guest_call(t, nr, r);
	sys4(__NR_rt_sigprocmask, SIG_SETMASK, (long)&all, 0, SIGSET_SIZE);
	/* The guest half sets the mask when it has taken the queued signals. */
	if (READ_ONCE(t->nsig) && can_interrupt(r))
		return DUNE_AGAIN;
	dune_thread_exit(t, r->rdi);
}

static long new_cpu_call(struct dune_thread *t, long nr, const struct dune_regs *r)
{
	long ret = guest_call(t, nr, r);

	dune_gdt_set_limit(t, dune_gdt_cpu());
	return ret;
}

static const u8 actions[SYSCALL_MAX] = {
	SPECIAL_CALLS(ACTION, 0)
	HOST_CALLS(ACTION, 0)
};

static long make_call(struct dune_thread *t, long nr, const struct dune_regs *r)
{
	enum action action = nr < SYSCALL_MAX ? actions[nr] : CALL;

	switch (action) {
	case CALL:
		return guest_call(t, nr, r);
	case REFUSE:
		return -ENOSYS;
	case MASK_RDI:
		return masked_call(t, nr, r, r->rdi);
	case MASK_R8:
		return masked_call(t, nr, r, r->r8);
	case MASK_R10:
		return masked_call(t, nr, r, r->r10);
	case MASK_IN_R9:
		return masked_call(t, nr, r, mask_in(t, r->r9));
	case NEW_CPU:
		return new_cpu_call(t, nr, r);
	case EXEC:
		return exec_call(t, nr, r);
	case EXIT:
		return exit_call(t, nr, r);
	}
	__builtin_unreachable();
}

/*
 * Carries out the system call in the registers. @restart: 0, or the error by which the kernel
 * has interrupted it already (dune_run.restart).
 */
static void do_syscall(struct dune_thread *t, u32 restart)
{
	struct dune_regs *r = &t->run->regs;
	long nr = (u32)r->rax;
	long ret;

	if (restart && READ_ONCE(t->nsig)) {
		if (!restarts(t, restart)) {
			r->rax = -EINTR;
			return;
		}
		if (can_interrupt(r)) {
			again(t, r);
			return;
		}
	} else if (restart == ERESTART_RESTARTBLOCK) {
		ret = guest_call(t, __NR_restart_syscall, r);
		r->rax = ret == DUNE_AGAIN ? -EINTR : ret;
		return;
	}
	ret = make_call(t, nr, r);
	if (ret == DUNE_AGAIN)
		again(t, r);
	else
		r->rax = ret;
}

static void do_hostcall(struct dune_thread *t)
{
	struct dune_regs *r = &t->run->regs;
	long ret;

	switch (r->rax & ~(DUNE_HOSTCALL - 1)) {
	case DUNE_HOSTCALL:
		do_syscall(t, 0);
		break;
	case HC_NOP:
		break;
	case HC_DIE:
		dune_host_die(r->rdi);
	case HC_BAD_STACK:
		dune_host_fatal(t, "no usable stack for a trap in ring 0", 0, SIGSEGV);
	case HC_CLONE:
		ret = dune_host_fork(t, (struct dune_clone *)r->rdi);
		if (ret == DUNE_AGAIN)
			again(t, r);
		else
			r->rax = ret;
		break;
	case HC_NO_THREADS:
		dune_fork_no_threads();
		break;
	case HC_NO_GRANULE:
		dune_host_no_granule(t, r->rdi);
		break;
	case HC_NO_PAGES:
		dune_host_no_pages(t, r->rdi);
		break;
	default:
		r->rax = -ENOSYS;
	}
}

/* Carries out HLT, which waits for an interrupt, that is, for a signal. */
static void do_hlt(struct dune_thread *t)
{
	if (!(t->run->regs.rflags & RFLAGS_IF))
		dune_host_fatal(t, "HLT with interrupts off", 0, SIGSEGV);
	dune_host_syscall(t, __NR_ppoll, 0, 0, 0, 0, 0, 0);
}

static void handle_exit(struct dune_thread *t)
{
	struct dune_run *run = t->run;

	switch (run->exit_reason) {
	case DUNE_EXIT_INTR:
		break;
	case DUNE_EXIT_SYSCALL:
		do_syscall(t, run->restart);
		break;
	case DUNE_EXIT_HOSTCALL:
		do_hostcall(t);
		break;
	case DUNE_EXIT_FAULT:
		dune_host_fault(t);
		break;
	case DUNE_EXIT_HLT:
		do_hlt(t);
		break;
	case DUNE_EXIT_SHUTDOWN:
		dune_host_fatal(t, "triple fault", 0, SIGSEGV);
	case DUNE_EXIT_INVALID:
		dune_host_fatal(t, "invalid guest state", 0, SIGABRT);
	default:
		dune_host_fatal(t, "unexpected exit", 0, SIGABRT);
	}
}

/* Runs the vCPU of @t for ever. The caller is on the host half's stack. */
void dune_host_loop(struct dune_thread *t)
{
	long err;
	u64 n;

	for (;;) {
		/* A signal that arrives after this test sets the vector itself. */
		if (READ_ONCE(t->nsig))
			t->run->irq_vector = VEC_SIGNAL;
		err = sys3(__NR_ioctl, t->vcpu, DUNE_RUN, 0);
		if (err)
			dune_host_fatal(t, "the vCPU cannot run", err, SIGABRT);
		n = t->run->counters[DUNE_COUNT_MIGRATION];
		if (unlikely(n != t->migrations)) {
			t->migrations = n;
			dune_gdt_set_limit(t, dune_gdt_cpu());
		}
		handle_exit(t);
	}
}

/*
 * Starts the host half of a thread that has entered. The host half finds its block by its stack,
 * so its handler must not run on another: the alternate stack is the guest half's from now on
 * (guest/altstack.c). The program may have called dune_enter() on that stack, so the kernel
 * would not have given it up before.
 */
void dune_host_enter(struct dune_thread *t)
{
	const struct kstack none = { .flags = SS_DISABLE };

	if (!(t->altstack.flags & SS_DISABLE))
		sys3(__NR_sigaltstack, (long)&none, 0, 0);
	dune_host_loop(t);
}
