/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The program's actions of signals (struct dune_sighand), and the actions that the
 * library installs in the kernel in their place. It installs them for rt_sigaction()
 * (guest/signal.c); for the actions from before dune_enter() (actions.c) or before a runtime
 * starts (alone/start.c); and for SA_RESETHAND when a signal is queued (host/signal.c or
 * alone/signal.c; guest/signal.c for a fault in the guest).
 */
#ifndef LIBDUNE_SIGACTION_H
#define LIBDUNE_SIGACTION_H

#include "linux.h"
#include "lock.h"

struct dune_thread;

/*
 * The actions that the program set with rt_sigaction(). Only the functions below write
 * them, or read them without the lock, which code that queues a signal does not take.
 */
struct dune_sighand {
	struct dune_lock lock;		/* orders calls of rt_sigaction() */
	u32 sequence;			/* odd while action[changing] is written */
	u64 handled;			/* signals with a handler; changed by atomic instructions */
	struct ksigaction action[NSIG + 1];
	struct ksigaction before;	/* action[changing] until then */
	int changing;
};

/*
 * host/signal.c and host/calls.S: the handler that the kernel calls if there is a host half, and
 * its return. Without a host half the handler is in the stub, and nothing returns from it.
 */
void dune_host_handler(int sig, struct ksiginfo *info, struct kucontext *uc);
void dune_host_restorer(void);

ALWAYS_INLINE bool is_handler(const struct ksigaction *act)
{
	return act->handler != SIG_DFL && act->handler != SIG_IGN;
}

/* Returns the signals that the handler of @act blocks while it runs. */
ALWAYS_INLINE u64 blocked_by(const struct ksigaction *act, int sig)
{
	return act->mask | (act->flags & SA_NODEFER ? 0 : sigbit(sig));
}

/* What becomes of a process that has no handler of a signal. */
enum dune_disposition { SIGNAL_IGNORED, SIGNAL_STOPS, SIGNAL_ENDS };

/*
 * Returns what the signal does whose action is @act, SIG_DFL or SIG_IGN (signal(7)). @fault: it is
 * that of an access, which is not ignored.
 */
ALWAYS_INLINE enum dune_disposition dune_disposition(int sig, const struct ksigaction *act,
						     bool fault)
{
	const u64 ignored = sigbit(SIGCHLD) | sigbit(SIGCONT) | sigbit(SIGURG) | sigbit(SIGWINCH);
	const u64 stops = sigbit(SIGTSTP) | sigbit(SIGTTIN) | sigbit(SIGTTOU);

	if (!fault && (act->handler == SIG_IGN || (sigbit(sig) & ignored)))
		return SIGNAL_IGNORED;
	return sigbit(sig) & stops ? SIGNAL_STOPS : SIGNAL_ENDS;
}

/* Stores in @real the action that the library installs for the program's @act. */
void dune_real_action(int sig, const struct ksigaction *act, struct ksigaction *real);

/*
 * Sets the kernel's action of @sig to @real, if that is not NULL, and stores the one before in
 * @old, if that is not NULL. Returns 0 or an error.
 */
long dune_kernel_action(int sig, const struct ksigaction *real, struct ksigaction *old);

/* The same, where the call cannot fail. */
void dune_tell_kernel(int sig, const struct ksigaction *real);

/*
 * Returns the program's action of @sig. While another thread, or the code that this call
 * interrupts, changes the action, that is the old action or the new one, never a mixture.
 * Takes no lock; for any context.
 */
struct ksigaction dune_action(const struct dune_sighand *sh, int sig);

/* Records the program's action. @sh's lock is held, or no other thread uses @sh yet. */
void dune_set_action(struct dune_sighand *sh, int sig, const struct ksigaction *act);

/*
 * Undoes the dune_set_action() in which a thread was killed, if one was. That thread holds @sh's
 * lock.
 */
void dune_undo_set_action(struct dune_sighand *sh);

/*
 * Records SIG_DFL if SA_RESETHAND asks for that, when the handler of @taken, which
 * dune_action() returned, is about to run. Returns true if the caller has to install
 * @real in the kernel. Takes no lock.
 */
bool dune_reset_action(struct dune_sighand *sh, int sig, const struct ksigaction *taken,
		       struct ksigaction *real);

/* actions.c */
void dune_actions_import(void);
void dune_actions_clear(struct dune_sighand *sh);
void dune_actions_ignore_for_exec(struct dune_thread *t);
void dune_actions_handle_again(struct dune_thread *t);
void dune_actions_repair(struct dune_thread *t);

/* The signals that always have the library's handler, for probes of memory (probe.h). */
#define PROBE_SIGNALS	(sigbit(SIGSEGV) | sigbit(SIGBUS))
#define UNBLOCKABLE	(sigbit(SIGKILL) | sigbit(SIGSTOP))

#endif /* LIBDUNE_SIGACTION_H */
