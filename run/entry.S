/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The kernel starts dune-run here. dune-run's own stack is in its image: the stack
 * that the kernel made is for the program, and stays untouched below the vectors.
 * run_main() is in main.c.
 */
	.text
	.globl	_start
	.type	_start, @function
_start:
	mov	%rsp, %rdi
	lea	boot_stack_top(%rip), %rsp
	xor	%ebp, %ebp
	call	run_main
	ud2
	.size	_start, . - _start

	.bss
	.balign	16
	.skip	65536
boot_stack_top:
	.section .note.GNU-stack, "", @progbits
