/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For the world switches: the return stack buffer after an exit. A guest may have left
 * kernel addresses in it, since a guest can map code at any linear address.
 * FILL_TWO_RETURNS gives the next two returns harmless targets; return_buffer_fill()
 * (linux/return_buffer.h) overwrites the whole buffer.
 */
#ifndef X86_RETURN_BUFFER_H
#define X86_RETURN_BUFFER_H

#include <asm/alternative.h>
#include <asm/cpufeatures.h>
#include <asm/nospec-branch.h>

/*
 * LITE is for processors on which only the entries of the guest's own calls remain
 * (post-barrier RSB, CVE-2022-26373).
 */
.macro FILL_TWO_RETURNS
	ALTERNATIVE_2 "jmp .Lfilled_\@", "", X86_FEATURE_RSB_VMEXIT, \
		"", X86_FEATURE_RSB_VMEXIT_LITE
	ANNOTATE_INTRA_FUNCTION_CALL
	call	.Lone_\@
	int3
.Lone_\@:
	ANNOTATE_INTRA_FUNCTION_CALL
	call	.Ltwo_\@
	int3
.Ltwo_\@:
	add	$16, %rsp
	lfence
.Lfilled_\@:
.endm

#endif /* X86_RETURN_BUFFER_H */
