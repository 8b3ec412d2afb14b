/* SPDX-License-Identifier: GPL-2.0-only */
/* A fetch with registers and a stack of the fuzzer's choice, and the way back (outside_fuzz.h). */
#include <linux/linkage.h>
#include <linux/objtool.h>

#include "callee_saved.S"
#include "outside_fuzz.h"

	.text

/* void outside_fuzz_go(struct fuzz_step *step) */
SYM_FUNC_START(outside_fuzz_go)
	PUSH_CALLEE_SAVED
	pushf
	mov	%rsp, STEP_SP(%rdi)
	mov	%rdi, outside_fuzz_now(%rip)
	mov	STEP_RSP(%rdi), %rsp
	mov	STEP_TARGET(%rdi), %rax
	mov	%rax, -8(%rsp)
	mov	STEP_FLAGS(%rdi), %rax
	mov	%rax, -16(%rsp)
	lea	-16(%rsp), %rsp
	mov	STEP_REGS + 8 * 0(%rdi), %rax
	mov	STEP_REGS + 8 * 1(%rdi), %rcx
	mov	STEP_REGS + 8 * 2(%rdi), %rdx
	mov	STEP_REGS + 8 * 3(%rdi), %rbx
	mov	STEP_REGS + 8 * 5(%rdi), %rbp
	mov	STEP_REGS + 8 * 6(%rdi), %rsi
	.irp	n, 8, 9, 10, 11, 12, 13, 14, 15
	mov	STEP_REGS + 8 * \n(%rdi), %r\n
	.endr
	mov	STEP_REGS + 8 * 7(%rdi), %rdi
	popf
	ret
/* Whatever the fetch leads to, it ends here: each word of the fuzzer's stack has this address. */
SYM_INNER_LABEL(outside_fuzz_landing, SYM_L_GLOBAL)
	ANNOTATE_NOENDBR
	mov	outside_fuzz_now(%rip), %rcx
	mov	%rax, STEP_RESULT(%rcx)
	mov	STEP_SP(%rcx), %rsp
	popf
	POP_CALLEE_SAVED
	jmp	__x86_return_thunk
SYM_FUNC_END(outside_fuzz_go)

/*
 * What the module calls: makes steps within its call, on the stack of outside_fuzz_go(), and then
 * returns to the module, with other registers than it had.
 */
SYM_FUNC_START(outside_fuzz_callee)
	mov	outside_fuzz_now(%rip), %rbx
	mov	(%rsp), %r12
	lea	8(%rsp), %r13
	mov	STEP_SP(%rbx), %rsp
	and	$-16, %rsp
	mov	%r12, %rdi
	mov	%r13, %rsi
	cld
	call	outside_fuzz_nested
	mov	%rbx, outside_fuzz_now(%rip)
	mov	%r13, %rsp
	mov	%r12, %rcx
	jmp	*%rcx
SYM_FUNC_END(outside_fuzz_callee)
