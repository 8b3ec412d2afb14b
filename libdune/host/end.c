// SPDX-License-Identifier: MIT OR Apache-2.0
/* How a process with a host half ends, with a message or without one. */
#include "host.h"

/* Ends the process by a signal's default action, whatever action the program has set. */
void dune_host_die(int sig)
{
	struct ksigaction act = { .handler = SIG_DFL };
	u64 set = sigbit(sig);
	long pid = sys3(__NR_getpid, 0, 0, 0);

	sys4(__NR_rt_sigaction, sig, (long)&act, 0, SIGSET_SIZE);
	sys3(__NR_tgkill, pid, sys3(__NR_gettid, 0, 0, 0), sig);
	sys4(__NR_rt_sigprocmask, SIG_UNBLOCK, (long)&set, 0, SIGSET_SIZE);
	for (;;)
		sys3(__NR_exit_group, 128 + sig, 0, 0);
}

/*
 * Prints a message, with the state of @t's vCPU if there is one, and dies of @sig. @err: the
 * negative errno number of what failed, or 0.
 */
void dune_host_fatal(struct dune_thread *t, const char *what, long err, int sig)
{
	struct dune_line line = { .n = 0 };

	dune_text_error(&line, what, err);
	if (t && t->run) {
		dune_text(&line, " at rip ");
		dune_text_hex(&line, t->run->regs.rip);
		dune_text(&line, ", rsp ");
		dune_text_hex(&line, t->run->regs.rsp);
		dune_text(&line, ", exit ");
		dune_text_hex(&line, t->run->hw_exit);
		dune_text(&line, " ");
		dune_text_hex(&line, t->run->hw_info1);
		dune_text(&line, " ");
		dune_text_hex(&line, t->run->hw_info2);
	}
	dune_text(&line, "\n");
	dune_text_print(&line);
	dune_host_die(sig);
}
