// SPDX-License-Identifier: MIT OR Apache-2.0
/* A system call whose result is DUNE_AGAIN: the handler of a signal runs first, then the call. */
#include "guest.h"

int dune_is_again(void)
{
	struct dune_thread *t = dune_self();
	bool again = t->call_again;

	t->call_again = 0;
	return again;
}

/* Not inlined: callers would have to keep the result in a register for it, on the hot path. */
void dune_syscall_again(struct dune_tf *tf)
{
	if (dune_is_again())
		tf->rip -= DUNE_SYSCALL_LENGTH;	/* rax is still the number */
	else
		tf->rax = DUNE_AGAIN;
}
