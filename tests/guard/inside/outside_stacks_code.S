/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls with a stack of the caller's choice: see outside_stacks.c. */
#include <linux/linkage.h>
#include <asm/nospec-branch.h>
#include "callee_saved.S"

	.bss
kept_sp:
	.skip	8
kept_cr3:
	.skip	8

	.text

.macro KEEP
	PUSH_CALLEE_SAVED
	mov	%rsp, kept_sp(%rip)
	mov	%cr3, %rax
	mov	%rax, kept_cr3(%rip)
	mov	%rsi, %rax
.endm

/* u64 outside_on_stack(const void *function, u64 rax, const u64 words[8]) */
SYM_FUNC_START(outside_on_stack)
	KEEP
	mov	$8, %ecx
1:	pushq	-8(%rdx, %rcx, 8)
	dec	%ecx
	jnz	1b
	ANNOTATE_RETPOLINE_SAFE
	jmp	*%rdi
SYM_FUNC_END(outside_on_stack)

/* u64 outside_on_other_stack(const void *function, u64 rax, u64 rsp, u64 cr3) */
SYM_FUNC_START(outside_on_other_stack)
	KEEP
	mov	%rcx, %cr3
	mov	%rdx, %rsp
	ANNOTATE_RETPOLINE_SAFE
	jmp	*%rdi
SYM_FUNC_END(outside_on_other_stack)

/* Where they return. */
SYM_CODE_START(outside_landing)
	mov	kept_sp(%rip), %rsp
	mov	kept_cr3(%rip), %rcx
	mov	%rcx, %cr3
	POP_CALLEE_SAVED
	RET
SYM_CODE_END(outside_landing)
