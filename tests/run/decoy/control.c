// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Two checks fewer, for dune-run-control: the oracle must find that. Vectors are
 * passed on as they are, and no descriptor is hidden.
 */
#include "calls.h"

void __wrap_call_iovec(struct dune_tf *tf);
bool __wrap_files_is_hidden(u64 fd);

void __wrap_call_iovec(struct dune_tf *tf)
{
	dune_syscall_result(tf, forward(tf));
}

bool __wrap_files_is_hidden(u64 fd)
{
	return false;
}
