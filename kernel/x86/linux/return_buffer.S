/* SPDX-License-Identifier: GPL-2.0-only */
/* Overwrites the return stack buffer at the end of a run (return_buffer.h). */
#include <linux/linkage.h>
#include <asm/alternative.h>
#include <asm/cpufeatures.h>
#include <asm/nospec-branch.h>

	.section .text, "ax"

/* void return_buffer_fill(void) */
SYM_FUNC_START(return_buffer_fill)
	FILL_RETURN_BUFFER %rax, RSB_CLEAR_LOOPS, X86_FEATURE_RSB_VMEXIT, \
		X86_FEATURE_RSB_VMEXIT_LITE
	RET
SYM_FUNC_END(return_buffer_fill)
