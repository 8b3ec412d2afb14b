/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * General registers for world switches: their offsets in an array of sixteen, in the order
 * of the instruction encoding, and macros for the registers that both vendors' switches
 * move between a guest and memory. A module that keeps them in a structure asserts the
 * offsets.
 */
#ifndef X86_REGISTERS_H
#define X86_REGISTERS_H

#define REGS_RAX	0
#define REGS_RCX	8
#define REGS_RDX	16
#define REGS_RBX	24
#define REGS_RBP	40
#define REGS_RSI	48
#define REGS_RDI	56
#define REGS_R(n)	(8 * (n))	/* R8 to R15 */

#ifdef __ASSEMBLER__

.macro LOAD_REGS regs
	mov	REGS_RCX(\regs), %rcx
	mov	REGS_RBX(\regs), %rbx
	mov	REGS_RBP(\regs), %rbp
	mov	REGS_RSI(\regs), %rsi
	.irp	n, 8, 9, 10, 11, 12, 13, 14, 15
	mov	REGS_R(\n)(\regs), %r\n
	.endr
.endm

.macro STORE_REGS regs
	mov	%rcx, REGS_RCX(\regs)
	mov	%rbx, REGS_RBX(\regs)
	mov	%rbp, REGS_RBP(\regs)
	mov	%rsi, REGS_RSI(\regs)
	.irp	n, 8, 9, 10, 11, 12, 13, 14, 15
	mov	%r\n, REGS_R(\n)(\regs)
	.endr
.endm

/*
 * The guest chose these values, and speculation must not use them. RAX, RDX and RSI are
 * overwritten by the switch, the callee-saved registers by its POPs.
 */
.macro CLEAR_REGS
	.irp	reg, ecx, edi, r8d, r9d, r10d, r11d
	xor	%\reg, %\reg
	.endr
.endm

#endif /* __ASSEMBLER__ */

#endif /* X86_REGISTERS_H */
