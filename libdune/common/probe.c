// SPDX-License-Identifier: MIT OR Apache-2.0
/* What a thread records about its probes of memory. */
#include "probe.h"

/* If the same fault comes this often, the kernel does not resolve it. */
#define MAX_REPEATS	1000

const int dune_probe_signals[2] = { SIGSEGV, SIGBUS };

void dune_probe_hold(struct dune_thread *t, const struct ksiginfo *info)
{
	u64 bit = sigbit(info->signo);

	if (t->held_set & bit)
		return;
	t->held[info->signo == dune_probe_signals[1]] = *info;
	t->held_set |= bit;
}

bool dune_probe_repeat(struct dune_thread *t, u64 rip, u64 address, u64 calls)
{
	if (t->fault_rip != rip || t->fault_address != address || t->fault_calls != calls) {
		t->fault_rip = rip;
		t->fault_address = address;
		t->fault_calls = calls;
		t->fault_repeats = 0;
	}
	return ++t->fault_repeats <= MAX_REPEATS;
}
