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
#define REGS_R8		64
#define REGS_R9		72
#define REGS_R10	80
#define REGS_R11	88
#define REGS_R12	96
#define REGS_R13	104
#define REGS_R14	112
#define REGS_R15	120

#ifdef __ASSEMBLER__

.macro LOAD_REGS regs
	mov	REGS_RCX(\regs), %rcx
	mov	REGS_RBX(\regs), %rbx
	mov	REGS_RBP(\regs), %rbp
	mov	REGS_RSI(\regs), %rsi
	mov	REGS_R8(\regs), %r8
	mov	REGS_R9(\regs), %r9
	mov	REGS_R10(\regs), %r10
	mov	REGS_R11(\regs), %r11
	mov	REGS_R12(\regs), %r12
	mov	REGS_R13(\regs), %r13
	mov	REGS_R14(\regs), %r14
	mov	REGS_R15(\regs), %r15
.endm

.macro STORE_REGS regs
	mov	%rcx, REGS_RCX(\regs)
	mov	%rbx, REGS_RBX(\regs)
	mov	%rbp, REGS_RBP(\regs)
	mov	%rsi, REGS_RSI(\regs)
	mov	%r8, REGS_R8(\regs)
	mov	%r9, REGS_R9(\regs)
	mov	%r10, REGS_R10(\regs)
	mov	%r11, REGS_R11(\regs)
	mov	%r12, REGS_R12(\regs)
	mov	%r13, REGS_R13(\regs)
	mov	%r14, REGS_R14(\regs)
	mov	%r15, REGS_R15(\regs)
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
