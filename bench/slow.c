// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A system call on the slow path: DUNE_RUN returns and the host half executes
 * the call, as it does for a thread that seccomp, ptrace or the like watches. A
 * flag forces the slow path here, and the thread is not watched.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <dune.h>
#include <linux/dune.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread.h>

/* The flag is read when a run begins, so a slow call ends the current one. */
static void set_flags(uint32_t flags)
{
	dune_self()->run->flags = flags;
	dune_hypercall(SYS_iopl, 0, 0, 0, 0, 0, 0);
}

int main(void)
{
	uint64_t on_linux = MEASURE(syscall(SYS_getpid)), slow;

	if (dune_enter(NULL)) {
		fprintf(stderr, "slow: cannot enter Dune mode\n");
		return 1;
	}
	set_flags(DUNE_RUN_SLOW_SYSCALL);
	slow = MEASURE(syscall(SYS_getpid));
	set_flags(0);
	figure("getpid_slow", on_linux, slow, 1);
	return 0;
}
