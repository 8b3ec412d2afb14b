/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Overwrites the return stack buffer at the end of a run (return_buffer.h). It does what the
 * kernel's FILL_RETURN_BUFFER does, but the calls are written out: the kernel's loop takes three
 * more instructions for each two of them, 47 in all.
 */
#include <linux/linkage.h>
#include <asm/alternative.h>
#include <asm/cpufeatures.h>
#include <asm/nospec-branch.h>

/* Kernels that count calls set the count to its maximum here (docs/mitigations.md, call depth). */
#ifndef CREDIT_CALL_DEPTH
#if defined(CONFIG_CALL_DEPTH_TRACKING) || defined(CONFIG_MITIGATION_CALL_DEPTH_TRACKING)
#error "this kernel counts calls in another way"
#endif
#define CREDIT_CALL_DEPTH
#endif

.macro FILL_RETURNS count:req
	.rept	\count
	ANNOTATE_INTRA_FUNCTION_CALL
	call	1f
	int3
1:
	.endr
	add	$8 * \count, %rsp
	lfence
.endm

	.section .text, "ax"

/* void return_buffer_fill(void) */
SYM_FUNC_START(return_buffer_fill)
	ALTERNATIVE "jmp .Lfew", "", X86_FEATURE_RSB_VMEXIT
	FILL_RETURNS RSB_CLEAR_LOOPS
	CREDIT_CALL_DEPTH
	RET
.Lfew:
	ALTERNATIVE "jmp .Lnone", "", X86_FEATURE_RSB_VMEXIT_LITE
	FILL_RETURNS 1
.Lnone:
	RET
SYM_FUNC_END(return_buffer_fill)
