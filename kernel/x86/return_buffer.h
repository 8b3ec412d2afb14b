/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For the world switches: the guest may have left kernel addresses in the
 * return stack buffer, for it can map code at any linear address. Two returns
 * leave the switch and its caller before the run loop makes calls of its own:
 * these two entries lead nowhere. The rest is overwritten once, before the
 * run loop itself returns (return_buffer.S). The build checks in the module that
 * there are no more returns (returns.awk).
 */
#ifndef DUNE_RETURN_BUFFER_H
#define DUNE_RETURN_BUFFER_H

#include <asm/alternative.h>
#include <asm/cpufeatures.h>
#include <asm/nospec-branch.h>

/* LITE: processors that keep all but the entries of the guest's own calls. */
.macro FILL_TWO_RETURNS
	ALTERNATIVE_2 "jmp .Lfilled", "", X86_FEATURE_RSB_VMEXIT, \
		"", X86_FEATURE_RSB_VMEXIT_LITE
	ANNOTATE_INTRA_FUNCTION_CALL
	call	.Lone
	int3
.Lone:
	ANNOTATE_INTRA_FUNCTION_CALL
	call	.Ltwo
	int3
.Ltwo:
	add	$16, %rsp
	lfence
.Lfilled:
.endm

#endif /* DUNE_RETURN_BUFFER_H */
