/* SPDX-License-Identifier: GPL-2.0-only */
/* Functions of dune-guard-inside whose frames and instructions the attacks know: see inside.h. */
#include <linux/linkage.h>
#include <asm/nospec-branch.h>

	.text

SYM_FUNC_START(enter_raw_call)
	push	%rbx
	mov	%rsi, %rbx
	mov	%rdi, %rax
	mov	%rdx, %rdi
	ANNOTATE_RETPOLINE_SAFE
	call	*%rax
	.globl	inner_after_call
inner_after_call:
	mov	(%rbx), %rax
	pop	%rbx
	RET
SYM_FUNC_END(enter_raw_call)

SYM_FUNC_START(enter_flags)
	pushf
	pop	%rax
	RET
SYM_FUNC_END(enter_flags)

SYM_FUNC_START(enter_nothing)
	RET
SYM_FUNC_END(enter_nothing)

	.balign	4096, 0xcc
	.globl	inner_other_page
inner_other_page:
	.fill	4096, 1, 0xcc
