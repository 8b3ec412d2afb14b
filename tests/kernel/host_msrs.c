// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * After each run the MSRs of system calls have the host's values again, also when the
 * processor refused the guest's state. Fails when the module does not restore one of
 * them.
 */
#define _GNU_SOURCE
#include "host.h"
#include "tap.h"

static struct guest g;

/*
 * The four system-call MSRs are loaded before VMRUN refuses the state. The host's
 * values must be back.
 */
static void refused(void)
{
	struct dune_state state = g.state;
	struct host before, after;

	state.star = 0x1111111100;
	state.lstar = 0x2222222000;
	state.cstar = 0x3333333000;
	state.sfmask = 0x44444444;
	state.cs.attributes = CS_LONG_AND_32BIT;
	guest_set_state(&g, &state);
	host_read(&before);
	int err = guest_run(&g);

	host_read(&after);

	const char *other = host_difference(&before, &after);

	ok(!other && !err && g.run->exit_reason == DUNE_EXIT_INVALID,
	   "after a state that is refused every register has the host's value (%s, %d, exit %u)",
	   other ? other : "no difference", err, g.run->exit_reason);
}

int main(void)
{
	host_begin(&g);
	host_open_msrs();
	host_check(&g, "system call MSRs", load_syscall_msrs);
	refused();
	return host_end();
}
