// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The instructions of copy.S that may fault, and the place at which execution
 * continues after a fault of each.
 */
#include "copy.h"

/*
 * Returns where execution continues after a fault of the instruction at @rip, or 0 if
 * copy.S does not provide for a fault there.
 */
u64 dune_fixup(u64 rip)
{
	if (rip == (u64)dune_copy_insn || rip == (u64)dune_copy_rest_insn)
		return (u64)dune_copy_fail;
	if (rip == (u64)dune_probe_insn)
		return (u64)dune_probe_fail;
	if (rip == (u64)dune_xrstor_insn)
		return (u64)dune_xrstor_fail;
	if (rip == (u64)dune_fxrstor_insn)
		return (u64)dune_fxrstor_fail;
	return 0;
}
