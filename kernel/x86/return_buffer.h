/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The return stack buffer after an exit. A guest may have left kernel addresses in
 * it, since a guest can map code at any linear address.
 *
 * After an exit, two returns are executed before the run loop makes calls of its own:
 * one from the world switch, one from the function that called it. FILL_TWO_RETURNS
 * gives these two harmless entries. Within the run loop calls and returns are balanced, and
 * before the loop returns, fill_return_buffer() overwrites the whole buffer. The
 * build checks in the finished module that no path has more returns (returns.awk).
 */
#ifndef X86_RETURN_BUFFER_H
#define X86_RETURN_BUFFER_H

#ifdef __ASSEMBLER__

#include <asm/alternative.h>
#include <asm/cpufeatures.h>
#include <asm/nospec-branch.h>

/* LITE is for processors where only the entries of the guest's own calls remain. */
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

#else

void fill_return_buffer(void);

#endif

#endif /* X86_RETURN_BUFFER_H */
