/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The program's actions of signals (struct dune_sighand), and the actions that the
 * library installs in the kernel in their place. Both halves install them: the
 * guest half for rt_sigaction(), the host half for the actions from before
 * dune_enter(), and either for SA_RESETHAND, the host half when it queues a signal,
 * the guest half for a fault in the guest.
 */
#ifndef LIBDUNE_SIGACTION_H
#define LIBDUNE_SIGACTION_H

#include "thread.h"

/* host/signal.c and host/entry.S: the handler that the kernel calls, and its return */
void dune_host_handler(int sig, struct ksiginfo *info, struct kucontext *uc);
void dune_host_restorer(void);

ALWAYS_INLINE bool is_handler(const struct ksigaction *act)
{
	return act->handler != SIG_DFL && act->handler != SIG_IGN;
}

/* The signals that the handler of @act blocks while it runs. */
ALWAYS_INLINE u64 blocked_by(const struct ksigaction *act, int sig)
{
	return act->mask | (act->flags & SA_NODEFER ? 0 : sigbit(sig));
}

/* The action that the library installs for the program's @act. */
void dune_real_action(int sig, const struct ksigaction *act,
		      struct ksigaction *real);

/* The program's action, whole, whatever code this interrupts. */
struct ksigaction dune_action(const struct dune_sighand *sh, int sig);

/* Record the program's action. @sh's lock is held, or no other thread uses @sh yet. */
void dune_set_action(struct dune_sighand *sh, int sig, const struct ksigaction *act);

/*
 * The handler of @taken, which dune_action() returned, is about to run: record
 * SIG_DFL if SA_RESETHAND asks for that. Returns true if the caller has to install
 * @real in the kernel.
 */
bool dune_reset_action(struct dune_sighand *sh, int sig, const struct ksigaction *taken,
		       struct ksigaction *real);

/* The signals that always have our handler, for probes of memory (host/fault.c). */
#define PROBE_SIGNALS	(sigbit(SIGSEGV) | sigbit(SIGBUS))
#define UNBLOCKABLE	(sigbit(SIGKILL) | sigbit(SIGSTOP))

#endif /* LIBDUNE_SIGACTION_H */
