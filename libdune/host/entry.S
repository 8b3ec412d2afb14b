/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Where a host half begins, at the top of its stack: in a thread that enters, and in a child
 * process that a call of calls.S has made.
 */
#include "layout.h"

	.text

/*
 * long dune_host_switch(t, run): the caller continues in the guest, where this
 * returns 0; the thread of Linux stays here and becomes the host half.
 */
	.globl	dune_host_switch
	.hidden	dune_host_switch
dune_host_switch:
	movq	%rbx, RUN_RBX(%rsi)
	movq	%rbp, RUN_RBP(%rsi)
	movq	%r12, RUN_R12(%rsi)
	movq	%r13, RUN_R13(%rsi)
	movq	%r14, RUN_R14(%rsi)
	movq	%r15, RUN_R15(%rsi)
	movq	%rsp, RUN_RSP(%rsi)
	leaq	1f(%rip), %rax
	movq	%rax, RUN_RIP(%rsi)
	movq	$(RFLAGS_RING0 | RFLAGS_IF), RUN_RFLAGS(%rsi)
	leaq	HOST_STACK_TOP(%rdi), %rsp
	call	dune_host_enter
1:	xorl	%eax, %eax
	ret

/*
 * dune_host_begin: the child of dune_host_clone() continues here. RDI is its block. Its stack is
 * its own copy of its parent's, or the top of a new one.
 */
	.globl	dune_host_begin
	.hidden	dune_host_begin
dune_host_begin:
	movq	%rdi, %rbx
	andq	$-16, %rsp
	call	dune_host_child
	movq	%rbx, %rdi
	leaq	HOST_STACK_TOP(%rdi), %rsp
	call	dune_host_loop

	.section .note.GNU-stack, "", @progbits
