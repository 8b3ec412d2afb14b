// SPDX-License-Identifier: MIT OR Apache-2.0
/* How a process without a host half ends, with a message or without one. */
#include "alone.h"

/* Ends the process by a signal's default action, whatever action the program has set. */
void dune_alone_die(int sig)
{
	const struct ksigaction act = { .handler = SIG_DFL };

	dune_alone_action(sig, &act, NULL);
	dune_alone_call(__NR_tgkill, dune_hypercall(__NR_getpid, 0, 0, 0, 0, 0, 0),
			dune_hypercall(__NR_gettid, 0, 0, 0, 0, 0, 0), sig, 0);
	dune_alone_force_mask(~sigbit(sig));
	for (;;)
		dune_alone_call(__NR_exit_group, 128 + sig, 0, 0, 0);
}

/* Prints a message, and dies of @sig. @err: the negative errno number of what failed, or 0. */
void dune_alone_fatal(const char *what, long err, int sig)
{
	struct dune_line line = { .n = 0 };

	dune_text_error(&line, what, err);
	dune_text(&line, "\n");
	dune_text_print(&line);
	dune_alone_die(sig);
}
