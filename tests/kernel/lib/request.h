/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For the tests of system calls by hypercall: one call by a guest. */
#ifndef DUNE_TESTS_REQUEST_H
#define DUNE_TESTS_REQUEST_H

#include "guest.h"
#include "tap.h"

#include <errno.h>
#include <unistd.h>

struct request {
	const char *name;
	long nr;
	long arg[6];
	long result;
};

/* In the guest. */
static inline u64 make_request(void *arg)
{
	struct request *r = arg;

	r->result = hypercall(r->nr, r->arg[0], r->arg[1], r->arg[2], r->arg[3], r->arg[4],
			      r->arg[5]);
	return 0;
}

/* As guest_resume(), but stops at the first exit for a call. */
static inline int until_syscall(struct guest *g)
{
	for (int i = 0; i < 10000; i++) {
		int err = guest_run(g);

		if (err && err != -EINTR)
			return err;
		if (err || g->run->exit_reason == DUNE_EXIT_INTR)
			continue;
		if (g->run->exit_reason == DUNE_EXIT_FAULT) {
			(void)*(volatile char *)g->run->fault_address;
			continue;
		}
		return g->run->exit_reason;
	}
	return -ETIME;
}

/* The descriptors of an empty pipe, which requests name. */
#define PIPE_OUT	100	/* to write to */
#define PIPE_IN		101	/* to read from */

static inline void open_pipe(void)
{
	int ends[2];

	if (pipe(ends))
		bail("pipe: %m");
	dup2(ends[1], PIPE_OUT);
	dup2(ends[0], PIPE_IN);
}

#endif
