// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Tests of system calls, signals and libdune below a seccomp filter that permits all calls:
 * they must pass as they do without it. Fails when a call of a thread with a filter has another
 * result, is interrupted or restarted otherwise, or takes the slow path
 * (kernel/syscall_counters).
 */
#include "filter.h"
#include "other_tests.h"
#include "tap.h"
#include "timing.h"

int main(void)
{
	struct sock_filter permit = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);

	begin(400);
	filter_install(&permit, 1, 0);
	run_other_tests("kernel", "syscall* signals injection own_process ptrace",
			"under a filter");
	run_other_tests("libdune", "syscalls signals process threads actions", "under a filter");
	return done();
}
