// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The thread's debug registers work before and after a guest: those that a tracer
 * sets and those of perf. Fails when the module does not load them again.
 */
#define _GNU_SOURCE
#include "child.h"
#include "host.h"
#include "tap.h"

#include <asm/debugreg.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static struct guest g;
static volatile u64 watched;

static u64 guest_writes(void *arg)
{
	watched = 7;
	for (volatile int i = 0; i < 1000; i++)
		;
	return 0;
}

static void watched_child(void)
{
	struct guest own;

	ptrace(PTRACE_TRACEME, 0, 0, 0);
	guest_open(&own);
	raise(SIGSTOP);		/* the tracer sets DR0 */
	watched = 1;		/* trap 1 */
	guest_call(&own, guest_writes, NULL);
	watched = 2;		/* trap 2 */
	guest_call(&own, guest_writes, NULL);
	watched = 3;		/* trap 3 */
	_exit(0);
}

static void by_tracer(void)
{
	int status, count = 0, pid = checked_fork();

	if (!pid)
		watched_child();
	waitpid(pid, &status, 0);
	long err = ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg[0]), &watched);

	err |= ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, u_debugreg[7]),
		      (DR_LEN_4 | DR_RW_WRITE) << DR_CONTROL_SHIFT | DR_LOCAL_ENABLE);
	ok(!err, "a tracer sets a watchpoint");
	while (ptrace(PTRACE_CONT, pid, 0, 0) == 0 && waitpid(pid, &status, 0) == pid &&
	       WIFSTOPPED(status)) {
		if (WSTOPSIG(status) != SIGTRAP)
			break;
		count++;
	}
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the watched child ends (%#x)", status);
	ok(count >= 3, "the watchpoint works before and after guest runs (%d)", count);
}

/* The same by perf, on the thread itself. */
static void by_perf(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT, .size = sizeof(attr), .bp_type = HW_BREAKPOINT_W,
		.bp_addr = (u64)&watched, .bp_len = HW_BREAKPOINT_LEN_8, .exclude_kernel = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	u64 before = 0, after = 0;

	if (fd < 0) {
		skip("no hardware breakpoints by perf", "perf breakpoint");
		return;
	}
	watched = 1;
	(void)!read(fd, &before, 8);
	guest_call(&g, guest_writes, NULL);
	watched = 2;
	(void)!read(fd, &after, 8);
	ok(before == 1 && after >= 2,
	   "a perf breakpoint counts before and after a guest (%lu, %lu)", before, after);
	close(fd);
}

int main(void)
{
	host_begin(&g);
	by_tracer();
	by_perf();
	return host_end();
}
