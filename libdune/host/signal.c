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
 * (fault.c); this file carries out their default action.
 */
#include "host.h"

typedef void (*native_handler)(int sig, void *info, void *uc);

static const int probe_signals[] = { SIGSEGV, SIGBUS };

static void tell_kernel(int sig, const struct ksigaction *real)
{
	sys4(__NR_rt_sigaction, sig, (long)real, 0, SIGSET_SIZE);
}

static void install(int sig, const struct ksigaction *act)
{
	struct ksigaction real;

	dune_real_action(sig, act, &real);
	tell_kernel(sig, &real);
}

static void import(int sig)
{
	struct dune_sighand *sh = &dune_process.sighand;
	struct ksigaction act;

	if (sys4(__NR_rt_sigaction, sig, 0, (long)&act, SIGSET_SIZE))
		return;
	dune_set_action(sh, sig, &act);
	if (is_handler(&act) || (sigbit(sig) & PROBE_SIGNALS))
		install(sig, &act);
}

/*
 * Take over the handlers that the process has now, which the module has reported
 * (dune_info), and SIGSEGV and SIGBUS in any case. Once.
 */
void dune_host_import(void)
{
	u64 handled = dune_process.info.handled_signals | PROBE_SIGNALS;

	if (dune_process.imported)
		return;
	dune_process.imported = 1;
	for (; handled; handled &= handled - 1)
		import(__builtin_ctzll(handled) + 1);
}

/* Forget all handlers: the kernel has set them to SIG_DFL (CLONE_CLEAR_SIGHAND). */
void dune_host_clear(struct dune_sighand *sh)
{
	const struct ksigaction dfl = { .handler = SIG_DFL };
	int sig;

	for (sig = 1; sig <= NSIG; sig++) {
		if (is_handler(&sh->action[sig]))
			dune_set_action(sh, sig, &dfl);
	}
	install(SIGSEGV, &sh->action[SIGSEGV]);
	install(SIGBUS, &sh->action[SIGBUS]);
}

/*
 * Before execve: a SIGSEGV or SIGBUS that the program ignores stays ignored in the
 * next program, although the kernel has the library's handler for it.
 */
void dune_host_ignore_for_exec(struct dune_thread *t)
{
	const struct ksigaction ign = { .handler = SIG_IGN };
	int i;

	for (i = 0; i < 2; i++) {
		if (dune_action(t->sighand, probe_signals[i]).handler == SIG_IGN)
			tell_kernel(probe_signals[i], &ign);
	}
}

/* Undo dune_host_ignore_for_exec(): there is no next program. */
void dune_host_handle_again(struct dune_thread *t)
{
	struct ksigaction act;
	int i;

	for (i = 0; i < 2; i++) {
		act = dune_action(t->sighand, probe_signals[i]);
		if (act.handler == SIG_IGN)
			install(probe_signals[i], &act);
	}
}

/*
 * Repair the action of @sig after a child changed it in the kernel. @sh's lock is held, so
 * nobody else changes the record meanwhile.
 */
static void after_sharing(struct dune_sighand *sh, int sig)
{
	struct ksigaction act = dune_action(sh, sig), real;

	if (sys4(__NR_rt_sigaction, sig, 0, (long)&real, SIGSET_SIZE) ||
	    real.handler == (u64)dune_host_handler)
		return;
	if (real.handler == SIG_DFL && act.handler != SIG_DFL) {
		act.handler = SIG_DFL;
		dune_set_action(sh, sig, &act);
	}
	if (sigbit(sig) & PROBE_SIGNALS)
		install(sig, &act);
}

/*
 * A child with the same handlers (CLONE_SIGHAND) is gone. If it executed a program,
 * a SIGSEGV or SIGBUS that is ignored has no handler in the kernel now
 * (dune_host_ignore_for_exec()). If it died by a fault, that signal has its default
 * action there (dune_host_die()). Linux does the same if the signal was blocked or
 * ignored (force_sig_info_to_task()), and then the parent has the default action,
 * too. Only the library's handler for probes has to come back.
 */
void dune_host_after_sharing(struct dune_thread *t)
{
	struct dune_sighand *sh = t->sighand;
	u64 flags = dune_lock(&sh->lock), signals;

	for (signals = sh->handled | PROBE_SIGNALS; signals; signals &= signals - 1)
		after_sharing(sh, __builtin_ctzll(signals) + 1);
	dune_unlock(&sh->lock, flags);
}

/* SA_RESETHAND, when the signal is taken and not when its handler runs. */
static void reset(struct dune_sighand *sh, int sig, const struct ksigaction *taken)
{
	struct ksigaction real;

	if (dune_reset_action(sh, sig, taken, &real))
		tell_kernel(sig, &real);
}

/* Run the handler of a thread that is not in guest mode. */
static void run_natively(int sig, struct ksiginfo *info, struct kucontext *uc)
{
	struct dune_sighand *sh = &dune_process.sighand;
	struct ksigaction act = dune_action(sh, sig);
	u64 mask = uc->sigmask | blocked_by(&act, sig);

	if (act.handler == SIG_IGN && info->code <= 0)
		return;
	if (!is_handler(&act))
		dune_host_die(sig);
	reset(sh, sig, &act);
	sys4(__NR_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, SIGSET_SIZE);
	((native_handler)act.handler)(sig, info, uc);
}

static bool at_probe(const struct kucontext *uc)
{
	return uc->mc.rip == (u64)dune_host_probe_read_insn ||
	       uc->mc.rip == (u64)dune_host_probe_write_insn;
}

/*
 * Returns whether the signal is the fault of one of the probes of fault.c, which have
 * the address in RDI. A positive code alone does not tell: signals of timers,
 * children and files have one, too. Beyond the end of user space every probe
 * faults, and if the address is not canonical its signal does not contain it.
 */
static bool in_probe(int sig, const struct ksiginfo *info, const struct kucontext *uc)
{
	u64 address = uc->mc.rdi;

	return at_probe(uc) && (sigbit(sig) & PROBE_SIGNALS) && info->code > 0 &&
	       (address >= USER_END || (info->addr ^ address) < PAGE);
}

/*
 * The mask at the time of the signal. It is not the mask that will be restored if
 * a call like sigsuspend() had set another one for its duration.
 */
static u64 mask_in_force(struct dune_thread *t, const struct kucontext *uc)
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

static void queue(struct dune_thread *t, int sig, const struct ksigaction *act,
		  const struct ksiginfo *info, struct kucontext *uc, bool fault)
{
	struct dune_sighand *sh = t->sighand;
	struct dune_sigentry *e = &t->queue[t->nsig];
	u64 mask = mask_in_force(t, uc);

	e->info = *info;
	e->action = *act;
	e->oldmask = t->nsig ? t->mask : uc->sigmask;
	e->trapno = fault ? uc->mc.trapno : 0;
	e->error = fault ? uc->mc.err : 0;
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
	reset(sh, sig, act);
	if (t->run)
		t->run->irq_vector = VEC_SIGNAL;
}

/*
 * A call that is about to start, or to start again, is made after the handler
 * instead. So is a probe, because the handler's mask may block the signal of the
 * probe's fault, unless the guest cannot take an interrupt before the access.
 */
static void abort_call(const struct dune_thread *t, struct kucontext *uc)
{
	u64 rip = uc->mc.rip;

	if ((rip >= (u64)dune_host_abort_begin &&
	     rip <= (u64)dune_host_abort_insn) ||
	    (rip >= (u64)dune_host_clone_begin &&
	     rip <= (u64)dune_host_clone_insn))
		uc->mc.rip = (u64)dune_host_abort;
	if (at_probe(uc) && (t->run->regs.rflags & RFLAGS_IF))
		uc->mc.rip = (u64)dune_host_probe_fail;
}

/*
 * A process sent this signal while a silent probe has it unblocked: keep it. A
 * second one while the first is pending is lost, as always with these numbers
 * (signal(7)).
 */
static void hold(struct dune_thread *t, int sig, const struct ksiginfo *info)
{
	if (t->held_set & sigbit(sig))
		return;
	t->held[sig == SIGBUS] = *info;
	t->held_set |= sigbit(sig);
}

/* The program's mask is set again: send to the kernel the signals that were kept. */
void dune_host_send_held(struct dune_thread *t)
{
	u64 set = t->held_set;
	struct ksiginfo info;
	int i;

	t->held_set = 0;
	for (i = 0; i < 2; i++) {
		if (!(set & sigbit(probe_signals[i])))
			continue;
		info = t->held[i];
		sys4(__NR_rt_tgsigqueueinfo, sys3(__NR_getpid, 0, 0, 0),
		     sys3(__NR_gettid, 0, 0, 0), probe_signals[i],
		     (long)&info);
	}
}

/* The handler that the kernel calls for all signals that the library installed. */
void dune_host_handler(int sig, struct ksiginfo *info, struct kucontext *uc)
{
	struct dune_thread *t = (void *)((u64)uc & ~(BLOCK_SIZE - 1ULL));
	struct ksigaction act;
	bool fault = in_probe(sig, info, uc);

	if (!dune_in_arena(uc)) {
		run_natively(sig, info, uc);
		return;
	}
	act = dune_action(t->sighand, sig);
	if (fault && t->touch_silent) {
		uc->mc.rip = (u64)dune_host_probe_fail;
		return;
	}
	if (t->touch_silent && (sigbit(sig) & PROBE_SIGNALS)) {
		hold(t, sig, info);
		return;
	}
	if (act.handler == SIG_IGN && !fault)
		return;
	if (!is_handler(&act)) {
		const struct ksigaction dfl = { .handler = SIG_DFL };

		if (!fault)
			dune_host_die(sig);
		/* The probe faults again, now with the default action. */
		tell_kernel(sig, &dfl);
		return;
	}
	if (t->nsig >= DUNE_SIGQUEUE)
		dune_host_fatal(t, "signal queue overrun", SIGABRT);
	queue(t, sig, &act, info, uc, fault);
	if (fault)
		uc->mc.rip = (u64)dune_host_probe_fail;
	else
		abort_call(t, uc);
}
