// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * dune-run-control lacks two checks: vectors are passed on as they are, and no
 * descriptor is hidden. decoy.bash fails when the oracle does not find what this
 * file permits.
 */
#include "calls.h"
#include "hidden.h"

void __wrap_call_iovec(struct dune_tf *tf);
bool __wrap_is_hidden(u64 fd);

void __wrap_call_iovec(struct dune_tf *tf)
{
	dune_syscall_result(tf, forward(tf));
}

bool __wrap_is_hidden(u64 fd)
{
	return false;
}
