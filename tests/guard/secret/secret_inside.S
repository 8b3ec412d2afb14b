/* SPDX-License-Identifier: GPL-2.0-only */
/* The inside: see secret.h. It uses nothing but its own sections. */
#include <linux/linkage.h>
#include <asm/nospec-branch.h>

#include "secret.h"

	.section .secret.private, "aw", @nobits
	.balign	4096
	.globl	secret_private, secret_private_end
secret_private:
	.skip	SECRET_STACKS * SECRET_STACK
secret_word:
	.skip	4096
secret_private_end:

	.section .secret.exchange, "aw", @nobits
	.balign	4096
	.globl	secret_exchange, secret_exchange_end
secret_exchange:
	.skip	4096
secret_exchange_end:

	.section .secret.constants, "a"
	.balign	4096
	.globl	secret_constants, secret_constants_end
secret_constants:
	.quad	0x1234
	.balign	4096
secret_constants_end:

/* All registers but RSP, and the one that is named, get the secret. */
.macro FILL but
	movabs	$SECRETS_COMPLEMENT, %rax
	not	%rax
	.irp	reg, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
	.ifnc	\reg,\but
	mov	%rax, %\reg
	.endif
	.endr
.endm

	.section .secret.text, "ax"
	.balign	4096
	.globl	secret_text
secret_text:
SYM_FUNC_START(secret_enter)
	cmp	$SECRET_NOTHING, %edi
	je	.Lnothing
	cmp	$SECRET_ARGUMENTS, %edi
	je	.Larguments
	cmp	$SECRET_FLAGS, %edi
	je	.Lflags
	cmp	$SECRET_RSP, %edi
	je	.Lrsp
	cmp	$SECRET_SPIN, %edi
	je	.Lspin
	cmp	$SECRET_STORE, %edi
	je	.Lstore
	cmp	$SECRET_CHECK, %edi
	je	.Lcheck
	cmp	$SECRET_RESIDUE, %edi
	je	.Lresidue
	cmp	$SECRET_READ, %edi
	je	.Lread
	cmp	$SECRET_WRITE, %edi
	je	.Lwrite
	cmp	$SECRET_CALL, %edi
	je	.Lcall
	cmp	$SECRET_EXECUTE, %edi
	je	.Lexecute
	cmp	$SECRET_HOLD, %edi
	je	.Lhold
	cmp	$SECRET_BAD_RETURN, %edi
	je	.Lbad_return
	cmp	$SECRET_CONSTANT, %edi
	je	.Lconstant
.Lnothing:
	xor	%eax, %eax
	RET

.Larguments:
	.irp	reg, rbx, rbp, r10, r11, r12, r13, r14, r15
	or	%\reg, %rax
	.endr
	RET

.Lflags:
	pushf
	pop	%rax
	RET

.Lrsp:
	mov	%rsp, %rax
	RET

.Lspin:
	push	%rsi
	FILL
1:	decq	(%rsp)
	jnz	1b
	.irp	reg, rcx, rdx, rbx, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15
	cmp	%rax, %\reg
	jne	.Llost
	.endr
	movabs	$SECRETS_COMPLEMENT, %rbx
	not	%rbx
	cmp	%rax, %rbx
	jne	.Llost
	pop	%rcx
	mov	$1, %eax
	xor	%edx, %edx
	RET
.Llost:
	pop	%rcx
	xor	%eax, %eax
	xor	%edx, %edx
	RET

/* RDX is a part of a result: the kernel may have it. */
	.globl	secret_middle
.Lstore:
	FILL
	mov	%rax, secret_word(%rip)
secret_middle:
	.rept	200
	push	%rax
	.endr
	add	$200 * 8, %rsp
	xor	%eax, %eax
	xor	%edx, %edx
	RET

.Lcheck:
	movabs	$SECRETS_COMPLEMENT, %rcx
	not	%rcx
	xor	%eax, %eax
	cmp	%rcx, secret_word(%rip)
	sete	%al
	RET

.Lresidue:
	xor	%eax, %eax
	mov	$SECRET_STACK / 8 - 1, %ecx
	mov	%rsp, %rdx
1:	sub	$8, %rdx
	or	(%rdx), %rax
	loop	1b
	xor	%edx, %edx
	neg	%rax
	sbb	%eax, %eax
	RET

.Lread:
	push	%rsi
	FILL	rsi
	mov	(%rsi), %rax
	pop	%rcx
	RET

.Lwrite:
	FILL	rsi
	mov	%rax, (%rsi)
	xor	%eax, %eax
	RET

.Lcall:
	FILL	rsi
	ANNOTATE_RETPOLINE_SAFE
	call	*%rsi
	RET

.Lexecute:
	FILL	rsi
	cmp	$0, %esi
	je	.Lud
	cmp	$1, %esi
	je	.Lbp
	cmp	$2, %esi
	je	.Ldivide
	cmp	$3, %esi
	je	.Lvmmcall
	cmp	$4, %esi
	je	.Llidt
	cmp	$5, %esi
	je	.Lwrmsr
	cmp	$6, %esi
	je	.Lcr3
	cmp	$7, %esi
	je	.Lint
	cmp	$8, %esi
	je	.Lstep
	RET
.Lud:
	ud2
.Lbp:
	int3
.Ldivide:
	xor	%ecx, %ecx
	div	%rcx
	RET
.Lvmmcall:
	movabs	$0x64756e6500000000, %rax
	vmmcall
	RET
.Llidt:
	lidt	(%rsp)
	RET
.Lwrmsr:
	mov	$0xc0000080, %ecx
	wrmsr
	RET
.Lcr3:
	mov	%rax, %cr3
	RET
.Lint:
	int	$0x80
	RET
.Lstep:
	pushf
	orl	$0x100, (%rsp)
	popf
	nop
	nop
	RET

.Lhold:
	FILL
	lock incq secret_exchange(%rip)
1:	cmpq	$0, secret_exchange + 8(%rip)
	je	1b
	xor	%eax, %eax
	xor	%edx, %edx
	RET

.Lbad_return:
	FILL
	push	%rax
	RET

.Lconstant:
	mov	secret_constants(%rip), %rax
	RET

SYM_FUNC_END(secret_enter)
	.skip	16, 0xcc
	.balign	4096, 0xcc
	.globl	secret_text_end
secret_text_end:
