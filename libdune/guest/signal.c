// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Signals in the guest half: the signals that host/signal.c or, without a host half,
 * alone/signal.c has queued become frames on the program's stack (sigframe.c), and so do
 * faults in the guest. And the system calls about handlers.
 *
 * From the moment that a signal is queued until the last hypercall of
 * dune_signal_irq() the kernel blocks all handled signals, SIGSEGV and SIGBUS; without a
 * host half it blocks all signals. So the queue grows only by a fault of the guest and by
 * signals to which another thread has given a handler in the meantime.
 *
 * The invariant of the queue: each entry's oldmask contains all that the actions of the older
 * entries block. For it is the mask that is restored when the entry's handler returns: that of the
 * code, or of the older entry's handler, which it interrupts. Two things follow. If a fault is put
 * first in the queue, what its action blocks is or'ed into all later masks. And if a frame is lost,
 * dune_signal_irq() makes the masks after it anew.
 */
#include "guest.h"

/* Flags that the kernel knows on x86; others read back as 0. */
#define SA_KNOWN	(SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO | \
			 SA_ONSTACK | SA_RESTART | SA_NODEFER |		\
			 SA_RESETHAND | SA_RESTORER | SA_EXPOSE_TAGBITS)

static long set_mask(int how, u64 set, u64 *old)
{
	return dune_services->mask(how, set, old);
}

/* Returns the mask in which the handler of @e runs. */
static u64 handler_mask(const struct dune_sigentry *e)
{
	return (e->oldmask | blocked_by(&e->action, e->info.signo)) & ~UNBLOCKABLE;
}

/*
 * Pushes the frame of a SIGSEGV, as Linux does, in place of the frame for @lost, which could
 * not be written. Returns the mask for its handler, in which @lost's action counts for nothing.
 * Ends the process if that frame cannot be written either.
 */
static u64 push_failed(struct dune_thread *t, struct dune_tf *tf, const struct dune_sigentry *lost)
{
	struct dune_sigentry e = {
		.info = { .signo = SIGSEGV, .code = SI_KERNEL },
		.action = dune_action(t->sighand, SIGSEGV),
		.oldmask = lost->oldmask,
		.trapno = VEC_PF,
	};
	struct ksigaction real;

	if (lost->info.signo == SIGSEGV || !is_handler(&e.action) ||
	    (lost->oldmask & sigbit(SIGSEGV)) || dune_sigframe_push(t, tf, &e))
		dune_services->die(SIGSEGV);
	if (dune_reset_action(t->sighand, SIGSEGV, &e.action, &real))
		dune_tell_kernel(SIGSEGV, &real);
	return handler_mask(&e);
}

/*
 * Finishes dune_lstar_* if the interrupt came in its last instructions, between the flags
 * and the jump, so that the frame shows the program's own registers.
 */
static void finish_lstar(struct dune_tf *tf)
{
	u64 popf = (u64)dune_calls.lstar_popf;

	if (tf->rip < popf || tf->rip >= (u64)dune_calls.lstar_end)
		return;
	if (tf->rip == popf)
		tf->rsp += RED_ZONE;
	tf->rip = tf->rcx;
}

/* The handler of the signal interrupt: pushes a frame for each signal that is queued. */
void dune_signal_irq(struct dune_tf *tf)
{
	struct dune_thread *t = dune_self();
	u32 i = 0, n = READ_ONCE(t->nsig);
	bool failed = false;	/* a frame is push_failed()'s */
	u64 mask = 0;		/* if failed: that of the last handler */

	if (!n)
		return;
	if (!from_ring3(tf))
		finish_lstar(tf);
	do {
		n = READ_ONCE(t->nsig);
		for (; i < n; i++) {
			struct dune_sigentry *e = &t->queue[i];

			/* Until now its oldmask had what the lost signal's action blocks. */
			if (failed)
				e->oldmask = mask;
			if (dune_sigframe_push(t, tf, e)) {
				mask = push_failed(t, tf, e);
				failed = true;
			} else if (failed) {
				mask = handler_mask(e);
			}
		}
		/* One instruction: a signal comes before it or after it. */
	} while (!__sync_bool_compare_and_swap(&t->nsig, n, 0));
	__atomic_fetch_add(&dune_process.signals, n, __ATOMIC_RELAXED);
	/* From here on the next signal may arrive; its interrupt waits for IRET. */
	if (set_mask(SIG_SETMASK, failed ? mask : t->mask, NULL))
		dune_services->die(SIGSEGV);
}

/*
 * Queues the signal for a fault in the guest itself, as the first, since it belongs to
 * the instruction at which all others arrived. The process dies where it would on Linux:
 * if the signal has its default action, or is ignored or blocked. @fpu_saved: the FPU may
 * have the values of a trap's handler, and gets the program's when that has returned.
 */
void dune_signal_fault(struct dune_tf *tf, int sig, int code, u64 addr, bool fpu_saved)
{
	struct dune_thread *t = dune_self();
	struct ksigaction act = dune_action(t->sighand, sig), real;
	struct dune_sigentry *e = &t->queue[0];
	u64 now, block;
	u32 i;

	if (!(tf->rflags & RFLAGS_IF))
		dune_services->die(sig);
	/* Block all signals: the queue must not grow while it is moved. */
	do {
		if (set_mask(SIG_BLOCK, ~0ULL, &now))
			dune_services->die(sig);
	} while (dune_services->settle(t));
	if (t->nsig)
		now = e->oldmask;
	else
		t->mask = now;
	if (!is_handler(&act) || (now & sigbit(sig)) || t->nsig >= DUNE_SIGQUEUE)
		dune_services->die(sig);

	block = blocked_by(&act, sig);
	for (i = t->nsig; i > 0; i--) {
		t->queue[i] = t->queue[i - 1];
		t->queue[i].oldmask |= block;
	}
	memset(e, 0, sizeof(*e));
	e->info.signo = sig;
	e->info.code = code;
	e->info.addr = addr;
	e->action = act;
	e->oldmask = now;
	e->trapno = tf->vector;
	e->error = tf->error;
	/* CR2 itself may be of a later fault, in ring 0, whose addresses are not the program's. */
	e->cr2 = tf->vector == VEC_PF ? addr : 0;
	t->mask = (t->mask | block) & ~UNBLOCKABLE;
	WRITE_ONCE(t->nsig, t->nsig + 1);
	if (dune_reset_action(t->sighand, sig, &act, &real))
		dune_tell_kernel(sig, &real);

	/*
	 * Ring 3's frame can be built at once, if the FPU registers are ring
	 * 3's. In ring 0 this function runs on the stack where the frame has to
	 * be: let the signal come as an interrupt.
	 */
	if (from_ring3(tf) && !fpu_saved)
		dune_signal_irq(tf);
	else
		dune_services->interrupt();
}

/*
 * Returns whether the kernel has nothing to do for @act, of @sig: the library installs the same for
 * it as for @before, the action in the record. An action that ignores the signal also discards
 * those that wait, so the kernel is told of it in any case. Of a default action the kernel uses
 * neither flags nor mask. SIGCHLD is the exception, for its flags; it is ignored by default, so the
 * kernel is told of it in any case, too.
 */
static bool kernel_has(int sig, const struct ksigaction *act, const struct ksigaction *before)
{
	struct ksigaction real, now;

	if (!dune_services->sets_all_actions)
		return false;
	if (!is_handler(act) && dune_disposition(sig, act, false) == SIGNAL_IGNORED)
		return false;
	dune_real_action(sig, act, &real);
	dune_real_action(sig, before, &now);
	if (real.handler != now.handler)
		return false;
	return real.handler == SIG_DFL || (real.flags == now.flags &&
					   real.restorer == now.restorer && real.mask == now.mask);
}

/*
 * Sets the action of @sig to @act, if that is not NULL, in the record and in the kernel, and
 * stores the old one in @old. Returns 0 or an error. @sh's lock is held.
 */
static long change_action(struct dune_sighand *sh, int sig,
			  const struct ksigaction *act, struct ksigaction *old)
{
	struct ksigaction real_old = { 0 }, real, before = sh->action[sig];
	bool known = dune_services->sets_all_actions;
	long err;

	dune_assert_held(&sh->lock);
	*old = before;
	if (act && kernel_has(sig, act, &before)) {
		dune_set_action(sh, sig, act);
		return 0;
	}
	if (act) {
		/* Before the kernel is told: a signal that comes at once is queued with this. */
		dune_set_action(sh, sig, act);
		dune_real_action(sig, act, &real);
	}
	err = dune_kernel_action(sig, act ? &real : NULL, known ? NULL : &real_old);
	/* The record has the old action if it is complete, or if the kernel's is the library's. */
	if (!known && real_old.handler != dune_process.handler)
		*old = real_old;
	if (act && err) {
		dune_set_action(sh, sig, &before);
	} else if (act && READ_ONCE(sh->action[sig].handler) != act->handler) {
		/* A signal after the record has already reset the new action. */
		dune_real_action(sig, &sh->action[sig], &real);
		dune_tell_kernel(sig, &real);
	}
	return err;
}

/* Carries out rt_sigaction(). */
long dune_sys_sigaction(struct dune_tf *tf)
{
	struct dune_sighand *sh = dune_self()->sighand;
	struct ksigaction act, old;
	int sig = tf->rdi;
	u64 flags;
	long err;

	if (tf->r10 != SIGSET_SIZE)
		return -EINVAL;
	if (tf->rsi && dune_get_user(tf, &act, tf->rsi, sizeof(act)))
		return -EFAULT;
	if (sig < 1 || sig > NSIG || (tf->rsi && (sigbit(sig) & UNBLOCKABLE)))
		return -EINVAL;
	if (tf->rsi) {
		act.flags &= SA_KNOWN;
		act.mask &= ~UNBLOCKABLE;
	}
	if (!tf->rsi && dune_services->sets_all_actions) {
		old = dune_action(sh, sig);
		err = 0;
	} else {
		flags = dune_lock(&sh->lock);
		err = change_action(sh, sig, tf->rsi ? &act : NULL, &old);
		dune_unlock(&sh->lock, flags);
	}
	if (!err && tf->rdx)
		err = dune_put_user(tf, tf->rdx, &old, sizeof(old));
	return err;
}

/* Carries out rt_sigreturn(), whose result is the frame itself. */
long dune_sys_sigreturn(struct dune_tf *tf)
{
	struct kucontext uc;
	long err;

	if (dune_sigframe_read(tf, &uc))
		goto bad;
	uc.sigmask &= ~UNBLOCKABLE;
	/* A signal that is queued has to be handled before this mask is set. */
	err = dune_services->forward_mask(uc.sigmask);
	if (err == DUNE_AGAIN && dune_is_again()) {
		tf->rip -= DUNE_SYSCALL_LENGTH;
		return 0;
	}
	/*
	 * The registers of a signal that comes before the frame's FPU registers are loaded may be
	 * the ending handler's. settle() loads those, and then the frame's are loaded again.
	 */
	do {
		if (dune_sigframe_restore(dune_self(), tf, &uc))
			goto bad;
	} while (dune_services->settle(dune_self()));
	return 0;
bad:
	dune_signal_fault(tf, SIGSEGV, SI_KERNEL, 0, false);
	return 0;
}
