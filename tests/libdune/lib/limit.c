// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The time limit of each program of this directory. main() runs in a child, and its parent, which
 * is never in Dune mode, waits for it: a limit inside the program, by a signal, would depend on
 * the library that is tested. The linker lets main() lead here (--wrap).
 */
#include "child.h"
#include "tap.h"

#include <stdlib.h>

/* In seconds, for time_limit(); below the limit of suite.toml in each machine. */
#define LIMIT	400

struct arguments {
	int argc;
	char **argv, **envp;
};

int __real_main(int argc, char **argv, char **envp);
int __wrap_main(int argc, char **argv, char **envp);

static void run_main(void *arg)
{
	struct arguments *a = arg;

	exit(__real_main(a->argc, a->argv, a->envp));
}

/* A program with an argument was started by hand or by itself, within its own limit. */
int __wrap_main(int argc, char **argv, char **envp)
{
	struct arguments a = { argc, argv, envp };
	struct outcome o;

	if (argc > 1)
		return __real_main(argc, argv, envp);
	o = in_child(run_main, &a, LIMIT);
	if (o.hung)
		bail("out of time");
	if (o.signal)
		bail("the program ended: %s", outcome_text(o));
	return o.code;
}
