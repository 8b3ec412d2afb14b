/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls of the inside that no compiler makes, and the gate: see secret.h. */
#include <linux/linkage.h>
#include <asm/nospec-branch.h>

#include "callee_saved.S"
#include "secret.h"

	.text

SYM_FUNC_START(secret_make_call)
	PUSH_CALLEE_SAVED
	push	%rdi
	mov	%rsp, CALL_SP(%rdi)
	mov	CALL_RSP(%rdi), %rax
	test	%rax, %rax
	jz	1f
	mov	%rdi, (%rax)
	mov	%rax, %rsp
1:	lea	.Lback(%rip), %rax
	push	%rax
	mov	CALL_TARGET(%rdi), %rax
	mov	CALL_RSI(%rdi), %rsi
	mov	CALL_RDI(%rdi), %rdi
	movabs	$3 * CALLERS, %rbx
	movabs	$5 * CALLERS, %rbp
	movabs	$12 * CALLERS, %r12
	movabs	$13 * CALLERS, %r13
	movabs	$14 * CALLERS, %r14
	movabs	$15 * CALLERS, %r15
	mov	%r15, %r10
	mov	%r15, %r11
	std
	ANNOTATE_RETPOLINE_SAFE
	jmp	*%rax
.Lback:
	push	%rax
	pushf
	mov	16(%rsp), %rax
	pop	CALL_FLAGS(%rax)
	cld
	pop	CALL_OUT(%rax)
	mov	%rcx, CALL_OUT + 8 * 1(%rax)
	mov	%rdx, CALL_OUT + 8 * 2(%rax)
	mov	%rbx, CALL_OUT + 8 * 3(%rax)
	mov	%rbp, CALL_OUT + 8 * 5(%rax)
	mov	%rsi, CALL_OUT + 8 * 6(%rax)
	mov	%rdi, CALL_OUT + 8 * 7(%rax)
	.irp	n, 8, 9, 10, 11, 12, 13, 14, 15
	mov	%r\n, CALL_OUT + 8 * \n(%rax)
	.endr
	mov	CALL_SP(%rax), %rsp
	pop	%rdi
	POP_CALLEE_SAVED
	xor	%eax, %eax
	RET
SYM_INNER_LABEL(secret_refused, SYM_L_GLOBAL)
	cld
	pop	%rdi
	POP_CALLEE_SAVED
	mov	$1, %eax
	RET
SYM_FUNC_END(secret_make_call)

SYM_FUNC_START(secret_gate)
	RET
SYM_FUNC_END(secret_gate)
