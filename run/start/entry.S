/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The kernel starts dune-run here. The stack of this code is in its own image: the stack that the
 * kernel made is for the program, and stays untouched below the vectors. start_main() is in
 * start.c. The image of the runtime is a part of this one.
 */
	.text
	.globl	_start
	.type	_start, @function
_start:
	mov	%rsp, %rdi
	lea	boot_stack_top(%rip), %rsp
	xor	%ebp, %ebp
	call	start_main
	ud2
	.size	_start, . - _start

	.bss
	.balign	16
	.skip	16384
boot_stack_top:

	.section .rodata
	.globl	runtime_image, runtime_image_end
	.balign	4096
runtime_image:
	.incbin	RUNTIME_IMAGE
	.balign	4096
runtime_image_end:

	.section .note.GNU-stack, "", @progbits
