/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The hypercalls that C functions make, with either vendor's instruction;
 * hypercall.c chooses between them.
 */
#include "layout.h"

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

/*
 * long dune_hypercall(nr, a0, a1, a2, a3, a4, a5)
 *
 * dune_syscall_forward() has the same arguments, and is for the program's own call: the
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
	movq	%rsi, %rax
	movq	TF_RSI(%rdi), %rsi
	movq	TF_RDX(%rdi), %rdx
	movq	TF_R10(%rdi), %r10
	movq	TF_R8(%rdi), %r8
	movq	TF_R9(%rdi), %r9
	movq	TF_RDI(%rdi), %rdi
	\hypercall
dune_forward_tf_call_\vendor:
	ret
.endm

	HYPERCALLS svm, vmmcall
	HYPERCALLS vmx, vmcall

	.section .note.GNU-stack, "", @progbits
