// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * System calls that cost more than others: those of a thread with a seccomp filter that
 * permits them, and those that the host half makes (the slow path), as it does where
 * ptrace, audit or a tracepoint watches the thread. A flag forces the slow path here, and the
 * thread is not watched.
 */
#define _GNU_SOURCE
#include "dune_mode.h"
#include "exits.h"
#include "filter.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <thread.h>

/* The flag is read when a run begins, so a slow call ends the current one. */
static void set_flags(uint32_t flags)
{
	dune_self()->run->flags = flags;
	dune_hypercall(SYS_iopl, 0, 0, 0, 0, 0, 0);
}

static void install_filter(void)
{
	struct sock_filter permit[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };

	filter_install(permit, FILTER_LEN(permit), 0);
}

/* The cost of getpid() on Linux, with the filter. */
static void measure_filtered(void *result)
{
	uint64_t *cost = result;

	install_filter();
	*cost = MEASURE(syscall(SYS_getpid));
}

int main(void)
{
	uint64_t on_linux = MEASURE(syscall(SYS_getpid)), filtered_on_linux, slow, filtered;
	double slow_exits, filtered_exits;

	in_process(measure_filtered, &filtered_on_linux, sizeof(filtered_on_linux));
	enter_dune_mode();
	set_flags(DUNE_RUN_SLOW_SYSCALL);
	slow = MEASURE(syscall(SYS_getpid));
	slow_exits = EXITS(syscall(SYS_getpid));
	set_flags(0);
	figure("getpid_slow", on_linux, slow, slow_exits);
	install_filter();
	filtered = MEASURE(syscall(SYS_getpid));
	filtered_exits = EXITS(syscall(SYS_getpid));
	figure("getpid_seccomp", filtered_on_linux, filtered, filtered_exits);
	return 0;
}
