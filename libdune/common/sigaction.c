// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Actions of signals: see sigaction.h.
 *
 * A host half's handler reads them while any code, of its own thread or of
 * another, may be changing them, and waits for nothing: its own thread continues
 * only after it. So the old action stays readable until the new one is complete, and
 * a count shows the reader which of the two to take (Linux calls it a latch).
 * Writers take the lock. All of this needs only compiler barriers: the processor
 * reorders neither stores with stores nor loads with loads (APM vol. 2, 7.2).
 *
 * Without a host half nothing reads during a change. There the old action is needed when a
 * vfork child was killed in one (dune_undo_set_action()).
 */
#include "sigaction.h"
#include "process.h"
#include "services.h"
#include "syscall.h"

void dune_real_action(int sig, const struct ksigaction *act, struct ksigaction *real)
{
	*real = *act;
	if (!is_handler(act) && !(sigbit(sig) & PROBE_SIGNALS))
		return;
	real->handler = dune_process.handler;
	/*
	 * The program's SA_ONSTACK is for threads outside. Of the others the kernel has no
	 * alternate stack, or it has the library's (@handler_flags).
	 */
	real->flags = (act->flags & (SA_NOCLDSTOP | SA_NOCLDWAIT | SA_ONSTACK | SA_RESTART)) |
		      dune_process.handler_flags | SA_SIGINFO | SA_RESTORER;
	real->restorer = dune_process.restorer;
	real->mask = ~0ULL;
}

long dune_kernel_action(int sig, const struct ksigaction *real, struct ksigaction *old)
{
	if (dune_active())
		return dune_services->action(sig, real, old);
	return sys4(__NR_rt_sigaction, sig, (long)real, (long)old, SIGSET_SIZE);
}

void dune_tell_kernel(int sig, const struct ksigaction *real)
{
	dune_kernel_action(sig, real, NULL);
}

/* Returns whether the action of @sig was being written when @sequence was read. */
static bool is_changing(const struct dune_sighand *sh, u32 sequence, int sig)
{
	return (sequence & 1) && READ_ONCE(sh->changing) == sig;
}

struct ksigaction dune_action(const struct dune_sighand *sh, int sig)
{
	struct ksigaction act;
	u32 sequence;

	/* Repeats only if another thread has changed an action in between. */
	do {
		sequence = READ_ONCE(sh->sequence);
		barrier();
		act = is_changing(sh, sequence, sig) ? sh->before : sh->action[sig];
		barrier();
	} while (READ_ONCE(sh->sequence) != sequence);
	return act;
}

/* Writes the record itself, between two steps of @sh->sequence. */
static void write_action(struct dune_sighand *sh, int sig, const struct ksigaction *act)
{
	sh->action[sig] = *act;
	if (is_handler(act))
		__atomic_fetch_or(&sh->handled, sigbit(sig), __ATOMIC_RELAXED);
	else
		__atomic_fetch_and(&sh->handled, ~sigbit(sig), __ATOMIC_RELAXED);
}

void dune_set_action(struct dune_sighand *sh, int sig, const struct ksigaction *act)
{
	sh->before = sh->action[sig];
	WRITE_ONCE(sh->changing, sig);
	barrier();
	WRITE_ONCE(sh->sequence, sh->sequence + 1);
	barrier();
	write_action(sh, sig, act);
	barrier();
	WRITE_ONCE(sh->sequence, sh->sequence + 1);
}

void dune_undo_set_action(struct dune_sighand *sh)
{
	dune_assert_held(&sh->lock);
	if (!(sh->sequence & 1))
		return;
	write_action(sh, sh->changing, &sh->before);
	barrier();
	WRITE_ONCE(sh->sequence, sh->sequence + 1);
}

bool dune_reset_action(struct dune_sighand *sh, int sig, const struct ksigaction *taken,
		       struct ksigaction *real)
{
	struct ksigaction *act = &sh->action[sig], dfl = *taken;
	u64 handler = taken->handler;

	if (!(taken->flags & SA_RESETHAND))
		return false;
	/* An action that has replaced @taken, or is about to, stays. */
	if (is_changing(sh, READ_ONCE(sh->sequence), sig) ||
	    READ_ONCE(act->flags) != taken->flags ||
	    !__atomic_compare_exchange_n(&act->handler, &handler, SIG_DFL, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return false;
	__atomic_fetch_and(&sh->handled, ~sigbit(sig), __ATOMIC_RELAXED);
	dfl.handler = SIG_DFL;
	dune_real_action(sig, &dfl, real);
	return true;
}
