/* SPDX-License-Identifier: GPL-2.0-only */
/* Functions of dune-guard-inside whose frames and instructions the attacks know: see inside.h. */
#include <linux/linkage.h>
#include <asm/alternative.h>
#include <asm/cpufeatures.h>
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

/*
 * The same by a patch site of two instructions. The other content, which no computer gets, is one
 * instruction, whose last three bytes are another one: MOV RCX to RBX.
 */
SYM_FUNC_START(enter_site_call)
	push	%rbx
	mov	%rsi, %rbx
	mov	%rdi, %rax
	mov	%rdx, %rdi
	.globl	inner_site
inner_site:
	ANNOTATE_RETPOLINE_SAFE
	ALTERNATIVE "call *%rax; .byte 0x0f, 0x1f, 0x00", ".byte 0xb9, 0x00, 0x48, 0x89, 0xcb", \
		    X86_FEATURE_XENPV
	mov	(%rbx), %rax
	pop	%rbx
	RET
SYM_FUNC_END(enter_site_call)

SYM_FUNC_START(enter_flags)
	pushf
	pop	%rax
	RET
SYM_FUNC_END(enter_flags)

/* u64 enter_control(u64 number): CR0, CR4 or DR7. */
SYM_FUNC_START(enter_control)
	mov	%cr0, %rax
	test	%edi, %edi
	jz	1f
	mov	%cr4, %rax
	dec	%edi
	jz	1f
	mov	%dr7, %rax
1:	RET
SYM_FUNC_END(enter_control)

SYM_FUNC_START(enter_nothing)
	RET
SYM_FUNC_END(enter_nothing)

/* No entry. It works at any address, since it calls nothing and returns without a thunk. */
SYM_FUNC_START(inner_store)
	mov	%rsi, (%rdi)
	ANNOTATE_UNRET_SAFE
	ret
SYM_FUNC_END(inner_store)

	.balign	4096, 0xcc
	.globl	inner_other_page
inner_other_page:
	.fill	4096, 1, 0xcc
