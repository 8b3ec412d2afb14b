/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The code of the stub, which runs in user mode (stub.c, which copies it to a page of its own;
 * <linux/dune.h> has its contract). It is data of the module.
 *
 * What lseek() returns is never used here: if the descriptor is not a vCPU's, the program may have
 * chosen that number. alone_run() and birth_enter() set the thread's RIP to a place after UD2, or
 * to the first one again.
 */
#include <linux/dune.h>
#include <linux/linkage.h>
#include <asm/unistd.h>

#include "dune/stub.h"

/* The instruction since the label 9 has @length bytes. */
.macro CHECK_LENGTH length:req
	.if . - 9b - \length
	.error "an instruction of the stub has another length than in stub.h"
	.endif
.endm

	.section .rodata, "a"
	.globl	stub_code, stub_code_end

stub_code:
	.org	stub_code + DUNE_STUB_ENTER
1:	movl	$__NR_lseek, %eax
	syscall
	.org	stub_code + STUB_ENTERED, 0xcc
	ud2

	.org	stub_code + DUNE_STUB_CALL, 0xcc
9:	syscall
	CHECK_LENGTH STUB_CALL_LENGTH
2:	movq	%rax, %rsi
	movl	%ebx, %edi
	movl	$DUNE_STUB_RESULT, %edx
	jmp	1b

	/*
	 * The handler of signals, and the places that probe an address. RDX is the address of the
	 * frame's struct ucontext. When an address is probed, RAX is 0.
	 */
	.org	stub_code + DUNE_STUB_SIGNAL, 0xcc
	movl	%ebx, %edi
	movq	%rdx, %rsi
	movl	$DUNE_STUB_FRAME, %edx
	jmp	1b

	.org	stub_code + DUNE_STUB_READ, 0xcc
9:	testb	%al, (%rdi)
	CHECK_LENGTH STUB_READ_LENGTH
	jmp	2b

	.org	stub_code + DUNE_STUB_WRITE, 0xcc
9:	lock orb $0, (%rdi)
	CHECK_LENGTH STUB_WRITE_LENGTH
	jmp	2b
	int3
stub_code_end:
