/* SPDX-License-Identifier: GPL-2.0-only */
/* To be included: puts the registers that a function preserves onto the stack, and takes them. */

.macro PUSH_CALLEE_SAVED
	push	%rbx
	push	%rbp
	push	%r12
	push	%r13
	push	%r14
	push	%r15
.endm

.macro POP_CALLEE_SAVED
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
.endm
