/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * long dune_alone_clone_*(make, struct dune_child *child), one for each vendor's hypercall
 * instruction: makes the vCPU by the hypercall @make, and then the child by the call in @child.
 * Returns the result in the parent.
 *
 * The child starts with the registers that its parent had at the first hypercall: RBX is @child.
 * One with a copy of the memory continues with the frame of its parent's call. One that shares the
 * memory has the guest-physical address of its run page in RDI. The stack from RSP on is its
 * parent's. The child changes the block, which make_shared() puts back afterwards: until then the
 * parent has the address of its own run page in RBP.
 */
#include "child.h"
#include "layout.h"

	.text

.macro CLONE vendor, hypercall
	.globl	dune_alone_clone_\vendor
	.hidden	dune_alone_clone_\vendor
	.balign	16
dune_alone_clone_\vendor:
	pushq	%rbx
	pushq	%rbp
	pushq	%r12			/* aligns the stack for dune_child_copied() */
	movq	%gs:T_RUN, %rbp
	movq	%rsi, %rbx
	movq	%rdi, %rax
	movq	$MAKE_CHILD, %rcx
	leaq	copied(%rip), %rdi
	leaq	shared(%rip), %rdx
	cmpq	%rcx, %rax
	cmovneq	%rdx, %rdi
	\hypercall
	testq	%rax, %rax
	js	1f
	movq	CHILD_NR(%rbx), %rax
	movq	CHILD_ARGS(%rbx), %rdi
	movq	(CHILD_ARGS + 8)(%rbx), %rsi
	movq	(CHILD_ARGS + 16)(%rbx), %rdx
	movq	(CHILD_ARGS + 24)(%rbx), %r10
	xorl	%r8d, %r8d
	\hypercall
	cmpl	$0, RUN_AGAIN(%rbp)
	je	1f
	movl	$0, RUN_AGAIN(%rbp)
	movq	$1, CHILD_AGAIN(%rbx)
1:	popq	%r12
	popq	%rbp
	popq	%rbx
	ret
.endm

	CLONE svm, vmmcall
	CLONE vmx, vmcall

copied:
	movq	%rbx, %rdi
	call	dune_child_copied
	movq	%rax, %rsp
	jmp	dune_tf_resume

shared:
	movq	%rdi, %rsi
	andq	$-16, %rsp
	subq	$TF_SIZE, %rsp
	movq	%rbx, %rdi
	movq	%rsp, %rdx
	call	dune_child_shared
	jmp	dune_tf_resume

	.section .note.GNU-stack, "", @progbits
