// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Tests of system calls, signals and libdune below a seccomp filter that permits all calls:
 * they must pass as they do without it. Fails when a call of a thread with a filter has another
 * result, is interrupted or restarted otherwise, or takes the slow path
 * (kernel/syscall_counters).
 */
#define _GNU_SOURCE
#include "other_tests.h"
#include "tap.h"
#include "timing.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

int main(void)
{
	struct sock_filter permit = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { .len = 1, .filter = &permit };

	begin(400);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		bail("the filter cannot be installed: %m");
	run_other_tests("kernel", "syscall* signals injection own_process ptrace",
			"under a filter");
	run_other_tests("libdune", "syscalls signals process threads actions", "under a filter");
	return done();
}
