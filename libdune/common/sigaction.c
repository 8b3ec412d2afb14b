// SPDX-License-Identifier: MIT OR Apache-2.0
/* Actions of signals as the kernel knows them: see sigaction.h. */
#include "sigaction.h"

/* What the kernel is told for the program's @act. */
void dune_real_action(int sig, const struct ksigaction *act,
		      struct ksigaction *real)
{
	*real = *act;
	if (!is_handler(act) && !(sigbit(sig) & PROBE_SIGNALS))
		return;
	real->handler = (u64)dune_host_handler;
	real->flags = (act->flags & (SA_NOCLDSTOP | SA_NOCLDWAIT | SA_RESTART)) |
		      SA_SIGINFO | SA_RESTORER;
	real->restorer = (u64)dune_host_restorer;
	real->mask = ~0ULL;
}
