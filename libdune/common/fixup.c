// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Which instructions of the library may fault, and where each goes on then.
 * The instructions are in copy.S.
 */
#include "copy.h"

u64 dune_fixup(u64 rip)
{
	if (rip == (u64)dune_copy_insn)
		return (u64)dune_copy_fail;
	if (rip == (u64)dune_probe_insn)
		return (u64)dune_probe_fail;
	if (rip == (u64)dune_xrstor_insn)
		return (u64)dune_xrstor_fail;
	if (rip == (u64)dune_fxrstor_insn)
		return (u64)dune_fxrstor_fail;
	return 0;
}
