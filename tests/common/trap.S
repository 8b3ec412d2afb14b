/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The parts of a hand-made guest that cannot be C: its first and last
 * instruction, the exception entries and the target of SYSCALL.
 */
#include "x86.h"

	.text

/*
 * The hypercall instruction, which is a different one for each vendor's
 * processors; guest_hypercall points to it (guest.c). No register or flag changes.
 */
	.globl	guest_hypercall_svm, guest_hypercall_vmx
guest_hypercall_svm:
	vmmcall
	ret
guest_hypercall_vmx:
	vmcall
	ret

/* A function in rbx with its argument in rdi; ends by a message. */
	.globl	guest_start0
guest_start0:
	call	*%rbx
	mov	%rax, %rdi
	mov	$0x100000001, %rax	/* DUNE_HOSTCALL | 1: done */
	call	*guest_hypercall(%rip)
	ud2

/* The same from ring 3, where a hypercall is #UD: by way of guest_lstar3. */
	.globl	guest_start3
guest_start3:
	call	*%rbx
	mov	%rax, %rdi
	mov	$0x100000001, %rax
	syscall
	ud2

	.globl	guest_ask
guest_ask:
	mov	$0x100000003, %rax	/* DUNE_HOSTCALL | 3: a question */
	call	*guest_hypercall(%rip)
	ret

/*
 * SYSCALL comes here with RIP in rcx and the flags, which SFMASK = 0 leaves
 * alone, in r11. In ring 0 no return instruction changes the ring.
 */
	.globl	guest_lstar0
guest_lstar0:
	call	*guest_hypercall(%rip)
	jmp	*%rcx

	.globl	guest_lstar3
guest_lstar3:
	call	*guest_hypercall(%rip)
	sysretq

	.balign	16
	.globl	guest_stubs
guest_stubs:
vector = 0
	.rept	256
	.balign	16
	.if	!(vector == X86_TRAP_DF || (vector >= X86_TRAP_TS && vector <= X86_TRAP_PF) || \
		  vector == X86_TRAP_AC || vector == X86_TRAP_CP || vector == X86_TRAP_VC || \
		  vector == X86_TRAP_SX)
	pushq	$0
	.endif
	pushq	$vector
	jmp	guest_trap
vector = vector + 1
	.endr

guest_trap:
	push	%rax
	push	%rcx
	push	%rdx
	push	%rbx
	push	%rbp
	push	%rsi
	push	%rdi
	push	%r8
	push	%r9
	push	%r10
	push	%r11
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	cld
	mov	%rsp, %rdi
	mov	%rsp, %rbp
	mov	guest_trap_handler(%rip), %rax
	test	%rax, %rax
	jz	1f
	and	$-16, %rsp
	call	*%rax
	jmp	2f
1:	mov	$0x100000002, %rax	/* DUNE_HOSTCALL | 2: an exception */
	call	*guest_hypercall(%rip)
2:	mov	%rbp, %rsp
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%r11
	pop	%r10
	pop	%r9
	pop	%r8
	pop	%rdi
	pop	%rsi
	pop	%rbp
	pop	%rbx
	pop	%rdx
	pop	%rcx
	pop	%rax
	add	$16, %rsp
	iretq

	.section .note.GNU-stack,"",@progbits
