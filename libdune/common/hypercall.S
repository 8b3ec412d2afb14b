/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The hypercalls that C functions make, with either vendor's instruction;
 * hypercall.c chooses between them.
 */
#include "layout.h"
#include <asm/unistd_64.h>

	.text

/* Moves the arguments of a C function into the registers of a system call. */
.macro CALL_REGS
	movq	%rdi, %rax
	movq	%rsi, %rdi
	movq	%rdx, %rsi
	movq	%rcx, %rdx
	movq	%r8, %r10
	movq	%r9, %r8
	movq	8(%rsp), %r9
.endm

/* Moves the number and the arguments of dune_forward_tf() there. */
.macro TF_REGS
	movq	%rsi, %rax
	movq	TF_RSI(%rdi), %rsi
	movq	TF_RDX(%rdi), %rdx
	movq	TF_R10(%rdi), %r10
	movq	TF_R8(%rdi), %r8
	movq	TF_R9(%rdi), %r9
	movq	TF_RDI(%rdi), %rdi
.endm

/*
 * long dune_hypercall(nr, a0, a1, a2, a3, a4, a5)
 *
 * dune_syscall_forward() has the same arguments, and is for the program's own call: a
 * host half tells the two apart by the address of the hypercall.
 *
 * long dune_forward_tf(struct dune_tf *tf, nr) is dune_syscall_forward() with the
 * arguments of the frame.
 */
.macro HYPERCALLS vendor, hypercall
	.globl	dune_hypercall_\vendor
	.hidden	dune_hypercall_\vendor
	.balign	16
dune_hypercall_\vendor:
	CALL_REGS
	\hypercall
	ret

	.globl	dune_forward_\vendor, dune_forward_call_\vendor
	.hidden	dune_forward_\vendor, dune_forward_call_\vendor
	.balign	16
dune_forward_\vendor:
	CALL_REGS
	\hypercall
dune_forward_call_\vendor:
	ret

	.globl	dune_forward_tf_\vendor, dune_forward_tf_call_\vendor
	.hidden	dune_forward_tf_\vendor, dune_forward_tf_call_\vendor
	.balign	16
dune_forward_tf_\vendor:
	TF_REGS
	\hypercall
dune_forward_tf_call_\vendor:
	ret
.endm

	HYPERCALLS svm, vmmcall
	HYPERCALLS vmx, vmcall

/*
 * The same for a process without a host half (alone/calls.c chooses them), where the module can
 * answer that a signal comes before the call (struct dune_signal in <linux/dune.h>).
 *
 * A system call of the library's own is then made in any case; where a forged frame says that it
 * was not made either, the next hypercall must not find that. What the module does itself is never
 * made again. The program's call is not made: the result is
 * DUNE_AGAIN, and dune_is_again() tells it from a result of that value. A call that the kernel
 * would continue by restart_syscall() is not made again, as in host/loop.c.
 */
.macro SIGNAL_COMES_FIRST to
	movq	%gs:T_RUN, %rcx
	cmpl	$0, RUN_AGAIN(%rcx)
	jne	\to
.endm

.macro ALONE vendor, hypercall
	.globl	dune_alone_call_\vendor
	.hidden	dune_alone_call_\vendor
	.balign	16
dune_alone_call_\vendor:
	movq	%rdi, %r11
	CALL_REGS
	\hypercall
	SIGNAL_COMES_FIRST 1f
	ret
1:	movl	$0, RUN_AGAIN(%rcx)
	movq	%r11, %rcx
	shrq	$32, %rcx
	cmpl	$(HOSTCALL_NOW >> 32), %ecx
	ja	2f
	movl	%r11d, %eax
	movq	$HOSTCALL_NOW, %rcx
	orq	%rcx, %rax
	\hypercall
	movq	%gs:T_RUN, %rcx
	movl	$0, RUN_AGAIN(%rcx)
2:	ret

	.globl	dune_alone_forward_\vendor
	.hidden	dune_alone_forward_\vendor
	.balign	16
dune_alone_forward_\vendor:
	CALL_REGS
	\hypercall
	SIGNAL_COMES_FIRST dune_alone_again
	ret

	.globl	dune_alone_forward_tf_\vendor
	.hidden	dune_alone_forward_tf_\vendor
	.balign	16
dune_alone_forward_tf_\vendor:
	TF_REGS
	\hypercall
	SIGNAL_COMES_FIRST dune_alone_again
	ret
.endm

	ALONE svm, vmmcall
	ALONE vmx, vmcall

dune_alone_again:
	movl	$0, RUN_AGAIN(%rcx)
	cmpl	$__NR_restart_syscall, %eax
	je	1f
	movl	$1, %gs:T_AGAIN
	movq	$DUNE_AGAIN_RESULT, %rax
	ret
1:	movq	$EINTR_RESULT, %rax
	ret

	.section .note.GNU-stack, "", @progbits
