// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Signals without a host half: from the run page to the queue (alone.h), from where
 * guest/signal.c delivers them. The kernel's handler of each signal is in the stub and never
 * returns, so all signals stay blocked until guest/signal.c sets the mask.
 */
#include "alone.h"

/*
 * Loads the FPU registers that the kernel has saved in the signal's frame. The frame is in memory
 * of the process. So its address is checked: at another one, the registers would show the
 * program other memory. A damaged frame ends the process.
 */
static void restore_fpu(const struct dune_thread *t, u64 at)
{
	u64 features = dune_fpu_features(), size = dune_fpu_size();

	if ((at & 63) || at < t->frames || at > t->frames_end - size)
		dune_alone_die(SIGSEGV);
	if (features ? dune_xrstor((void *)at, features) : dune_fxrstor((void *)at))
		dune_alone_die(SIGSEGV);
}

/*
 * Reads the signal that waits in the run page, if one does, and loads the FPU registers that the
 * thread had before that signal. Returns whether one waited.
 */
bool dune_alone_take(struct dune_thread *t, struct dune_event *e)
{
	struct dune_signal *s = &t->run->signal;

	if (!READ_ONCE(s->waiting))
		return false;
	memcpy(&e->info, s->info, sizeof(e->info));
	e->mask = s->mask;
	e->trapno = s->trap;
	e->error = s->error;
	e->cr2 = s->cr2;
	/* First: reading the frame may fault, and the fault's handler looks for a signal again. */
	WRITE_ONCE(s->waiting, 0);
	restore_fpu(t, s->fpstate);
	if (e->info.signo < 1 || e->info.signo > NSIG)
		dune_alone_die(SIGSEGV);
	return true;
}

/*
 * Carries out the default action of a signal for which the program has no handler, while the kernel
 * has the library's: always for SIGSEGV and SIGBUS, and for any other signal between the two steps
 * of change_action() (guest/signal.c).
 */
static void without_handler(const struct dune_thread *t, const struct dune_event *e,
			    const struct ksigaction *act, bool fault)
{
	int sig = e->info.signo;

	if (!t->nsig)
		dune_alone_set_mask(e->mask, NULL);
	switch (dune_disposition(sig, act, fault)) {
	case SIGNAL_IGNORED:
		break;
	case SIGNAL_STOPS:
		dune_hypercall(__NR_kill, dune_hypercall(__NR_getpid, 0, 0, 0, 0, 0, 0), SIGSTOP, 0,
			       0, 0, 0);
		break;
	case SIGNAL_ENDS:
		dune_alone_die(sig);
	}
}

/*
 * Puts a signal into the queue. @fault: it is that of a probe (fault.c), so of an access of the
 * program. If a call like sigsuspend() has set a mask for its duration, that mask ends here; it is
 * not the mask that will be restored.
 */
void dune_alone_queue(struct dune_thread *t, const struct dune_event *e, bool fault)
{
	struct dune_sigentry *entry = &t->queue[t->nsig];
	struct ksigaction act = dune_action(t->sighand, e->info.signo), real;
	u64 mask = e->mask;

	if (!is_handler(&act)) {
		without_handler(t, e, &act, fault);
		return;
	}
	if (t->nsig >= DUNE_SIGQUEUE)
		dune_alone_fatal("signal queue overrun", 0, SIGABRT);
	if (t->temp_mask_on)
		mask = t->temp_mask;
	if (t->nsig)
		mask = t->mask;
	entry->info = e->info;
	entry->action = act;
	entry->oldmask = t->nsig ? t->mask : e->mask;
	entry->trapno = fault ? e->trapno : 0;
	entry->error = fault ? e->error : 0;
	entry->cr2 = fault ? e->cr2 : 0;
	t->mask = (mask | blocked_by(&act, e->info.signo)) & ~UNBLOCKABLE;
	WRITE_ONCE(t->nsig, t->nsig + 1);
	if (dune_reset_action(t->sighand, e->info.signo, &act, &real))
		dune_tell_kernel(e->info.signo, &real);
}

/* Puts the signal that waits in the run page into the queue. Returns whether one waited. */
bool dune_alone_collect(struct dune_thread *t)
{
	struct dune_event e;

	if (!dune_alone_take(t, &e))
		return false;
	dune_alone_queue(t, &e, false);
	return true;
}

/* The handler of the signal interrupt. There is none to deliver if it was ignored. */
void dune_alone_signal(struct dune_tf *tf)
{
	struct dune_thread *t = dune_self();

	dune_alone_look_at_cpu(t);
	dune_alone_collect(t);
	dune_signal_irq(tf);
}
