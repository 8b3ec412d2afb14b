// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Signals in the host half. For each signal that the program handles, the kernel
 * has dune_host_handler(), which blocks all signals while it runs. It queues the
 * signal for the guest half (guest/signal.c) and sets a mask in which all handled
 * signals, SIGSEGV and SIGBUS are blocked, until the guest half has built the
 * frame and set the mask that the program's handler should have. So a fault of
 * fault.c's probes ends the process meanwhile, as the guest could not take its
 * signal either. The kernel carries out default actions.
 *
 * SIGSEGV and SIGBUS always have the library's handler, for probes of memory
 * (fault.c); this file carries out their default action. Another signal can have the
 * library's handler while the program has none: between the two steps of change_action()
 * (guest/signal.c), and for good if a vfork child was killed between them.
 */
#include "host.h"
#include "probe.h"

typedef void (*native_handler)(int sig, void *info, void *uc);

/*
 * Resets the action if @taken has SA_RESETHAND, when the signal is taken and not when its
 * handler runs.
 */
static void reset_if_asked(struct dune_sighand *sh, int sig, const struct ksigaction *taken)
{
	struct ksigaction real;

	if (dune_reset_action(sh, sig, taken, &real))
		dune_tell_kernel(sig, &real);
}

/* Carries out @act, which is SIG_DFL or SIG_IGN. @fault: the signal is not ignored. */
static void without_handler(int sig, const struct ksigaction *act, bool fault)
{
	switch (dune_disposition(sig, act, fault)) {
	case SIGNAL_IGNORED:
		break;
	case SIGNAL_STOPS:
		sys3(__NR_kill, sys3(__NR_getpid, 0, 0, 0), SIGSTOP, 0);
		break;
	case SIGNAL_ENDS:
		dune_host_die(sig);
	}
}

/* Runs the handler of a thread that is not in guest mode. */
static void run_natively(int sig, struct ksiginfo *info, struct kucontext *uc)
{
	struct dune_sighand *sh = &dune_process.sighand;
	struct ksigaction act = dune_action(sh, sig);
	u64 mask = uc->sigmask | blocked_by(&act, sig);

	if (!is_handler(&act)) {
		without_handler(sig, &act, (sigbit(sig) & PROBE_SIGNALS) && info->code > 0);
		return;
	}
	reset_if_asked(sh, sig, &act);
	sys4(__NR_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, SIGSET_SIZE);
	((native_handler)act.handler)(sig, info, uc);
}

static bool at_probe(const struct kucontext *uc)
{
	return uc->mc.rip == (u64)dune_host_probe_read_insn ||
	       uc->mc.rip == (u64)dune_host_probe_write_insn;
}

/* Returns whether a probe is about to begin, and has perhaps already tested for signals. */
static bool before_probe(const struct kucontext *uc)
{
	u64 rip = uc->mc.rip;

	return (rip >= (u64)dune_host_probe_read && rip <= (u64)dune_host_probe_read_insn) ||
	       (rip >= (u64)dune_host_probe_write && rip <= (u64)dune_host_probe_write_insn);
}

/* Returns whether the signal is the fault of one of the probes of fault.c. */
static bool in_probe(const struct ksiginfo *info, const struct kucontext *uc)
{
	/* They have the address in RDI. */
	return at_probe(uc) && is_probe_fault(info, uc->mc.rdi);
}

/*
 * Returns the mask at the time of the signal. If a call like sigsuspend() had set it for its
 * duration, that mask ends here; it is not the mask that will be restored.
 */
static u64 take_mask(struct dune_thread *t, const struct kucontext *uc)
{
	if (t->nsig)
		return t->mask;
	if (t->temp_mask_on && uc->mc.rip == (u64)dune_host_abort_done &&
	    (long)uc->mc.rax == -EINTR) {
		t->temp_mask_on = 0;
		return t->temp_mask;
	}
	return uc->sigmask;
}

/*
 * Puts the signal into the queue, and lets the host half continue with all handled signals
 * blocked.
 */
static void queue(struct dune_thread *t, int sig, const struct ksigaction *act,
		  const struct ksiginfo *info, struct kucontext *uc, bool fault)
{
	struct dune_sighand *sh = t->sighand;
	struct dune_sigentry *e = &t->queue[t->nsig];
	u64 mask = take_mask(t, uc);

	e->info = *info;
	e->action = *act;
	e->oldmask = t->nsig ? t->mask : uc->sigmask;
	e->trapno = fault ? uc->mc.trapno : 0;
	e->error = fault ? uc->mc.err | dune_fetch_error(t->run->fault_flags) : 0;
	e->cr2 = fault ? uc->mc.cr2 : 0;
	t->mask = (mask | blocked_by(act, sig)) & ~UNBLOCKABLE;
	barrier();
	WRITE_ONCE(t->nsig, t->nsig + 1);
	/*
	 * No handled signal arrives before the queue is empty, whatever the
	 * handlers' masks allow, except one to which another thread gives a
	 * handler from now on. The last place is kept for a fault of the guest
	 * itself (dune_signal_fault()).
	 */
	uc->sigmask |= t->nsig < DUNE_SIGQUEUE - 1 ? sh->handled | PROBE_SIGNALS : ~0ULL;
	reset_if_asked(sh, sig, act);
	if (t->run)
		t->run->irq_vector = VEC_SIGNAL;
}

/*
 * Postpones a call that is about to start, or to start again, until after the program's
 * handler. Postpones a probe, too, because the handler's mask may block the signal of the
 * probe's fault, unless the guest cannot take an interrupt before the access.
 */
static void abort_call(const struct dune_thread *t, struct kucontext *uc)
{
	u64 rip = uc->mc.rip;

	if ((rip >= (u64)dune_host_abort_begin &&
	     rip <= (u64)dune_host_abort_insn) ||
	    (rip >= (u64)dune_host_clone_begin && rip <= (u64)dune_host_clone_insn))
		uc->mc.rip = (u64)dune_host_abort;
	if (before_probe(uc) && (t->run->regs.rflags & RFLAGS_IF))
		uc->mc.rip = (u64)dune_host_probe_fail;
}

/* Sends to the kernel the signals that were kept. The program's mask is set again. */
void dune_host_send_held(struct dune_thread *t)
{
	u64 set = t->held_set;
	struct ksiginfo info;
	int i;

	t->held_set = 0;
	for (i = 0; i < 2; i++) {
		if (!(set & sigbit(dune_probe_signals[i])))
			continue;
		info = t->held[i];
		sys4(__NR_rt_tgsigqueueinfo, sys3(__NR_getpid, 0, 0, 0),
		     sys3(__NR_gettid, 0, 0, 0), dune_probe_signals[i],
		     (long)&info);
	}
}

/*
 * Queues the signal of a guest that executes memory which can be read but not executed. The
 * kernel would have sent it, but no instruction of the host half faults in that way. The process
 * dies where it would on Linux, and if interrupts are off (guest/signal.c). If a signal was queued
 * first, that one is handled first; then the guest faults again.
 */
void dune_host_exec_fault(struct dune_thread *t)
{
	u64 address = t->run->fault_address, all = ~0ULL;
	const struct ksiginfo info = {
		.signo = SIGSEGV, .code = SEGV_ACCERR, .addr = address
	};
	struct kucontext uc = {
		.mc = { .trapno = VEC_PF, .err = PF_PRESENT | PF_USER | PF_INSTR, .cr2 = address }
	};
	struct ksigaction act;

	if (!(t->run->regs.rflags & RFLAGS_IF))
		dune_host_die(SIGSEGV);
	sys4(__NR_rt_sigprocmask, SIG_SETMASK, (long)&all, (long)&uc.sigmask, SIGSET_SIZE);
	if (!t->nsig) {
		act = dune_action(t->sighand, SIGSEGV);
		if (!is_handler(&act) || (uc.sigmask & sigbit(SIGSEGV)))
			dune_host_die(SIGSEGV);
		queue(t, SIGSEGV, &act, &info, &uc, true);
	}
	sys4(__NR_rt_sigprocmask, SIG_SETMASK, (long)&uc.sigmask, 0, SIGSET_SIZE);
}

/* The handler that the kernel calls for all signals that the library has installed it for. */
void dune_host_handler(int sig, struct ksiginfo *info, struct kucontext *uc)
{
	struct dune_thread *t = (void *)((u64)uc & ~(BLOCK_SIZE - 1ULL));
	struct ksigaction act;
	bool fault = in_probe(info, uc);

	if (!dune_in_arena(uc)) {
		run_natively(sig, info, uc);
		return;
	}
	act = dune_action(t->sighand, sig);
	if (fault && t->silent_probe) {
		uc->mc.rip = (u64)dune_host_probe_fail;
		return;
	}
	if (t->silent_probe && (sigbit(sig) & PROBE_SIGNALS)) {
		dune_probe_hold(t, info);
		return;
	}
	if (!is_handler(&act) && fault) {
		const struct ksigaction dfl = { .handler = SIG_DFL };

		/* The probe faults again, now with the default action. */
		dune_tell_kernel(sig, &dfl);
		return;
	}
	if (!is_handler(&act)) {
		without_handler(sig, &act, false);
		return;
	}
	if (t->nsig >= DUNE_SIGQUEUE)
		dune_host_fatal(t, "signal queue overrun", 0, SIGABRT);
	queue(t, sig, &act, info, uc, fault);
	if (fault)
		uc->mc.rip = (u64)dune_host_probe_fail;
	else
		abort_call(t, uc);
}
