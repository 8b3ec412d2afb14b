/* SPDX-License-Identifier: GPL-2.0-only */
/* Overwrites the return stack buffer at the end of a run: see x86/return_buffer.h. */
#include <linux/linkage.h>

#include "x86/return_buffer.h"

	.section .text, "ax"

/* void fill_return_buffer(void) */
SYM_FUNC_START(fill_return_buffer)
	FILL_RETURN_BUFFER %rax, RSB_CLEAR_LOOPS, X86_FEATURE_RSB_VMEXIT, \
		X86_FEATURE_RSB_VMEXIT_LITE
	RET
SYM_FUNC_END(fill_return_buffer)
