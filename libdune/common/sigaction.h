/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the kernel is told instead of the program's actions of signals. Both
 * halves tell it: the guest half for rt_sigaction(), the host half for the
 * actions from before dune_enter() and after a handler ran once (SA_RESETHAND).
 */
#ifndef LIBDUNE_SIGACTION_H
#define LIBDUNE_SIGACTION_H

#include "thread.h"

/* host/signal.c and host/entry.S: the handler that the kernel calls, and its return */
void dune_host_handler(int sig, struct ksiginfo *info, struct kucontext *uc);
void dune_host_restorer(void);

ALWAYS_INLINE int is_handler(const struct ksigaction *act)
{
	return act->handler != SIG_DFL && act->handler != SIG_IGN;
}

void dune_real_action(int sig, const struct ksigaction *act,
		      struct ksigaction *real);

/* The signals that always have our handler, for probes of memory (host/fault.c). */
#define PROBE_SIGNALS	(sigbit(SIGSEGV) | sigbit(SIGBUS))
#define UNBLOCKABLE	(sigbit(SIGKILL) | sigbit(SIGSTOP))

#endif /* LIBDUNE_SIGACTION_H */
