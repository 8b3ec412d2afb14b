/* SPDX-License-Identifier: GPL-2.0-only */
/* A CPU's way into the guard and out of it. The other side is guard/hv/head.S. */
#include <linux/linkage.h>
#include <asm/asm.h>
#include <asm/nospec-branch.h>

#include "guard/hv/hv.h"

/* Offsets in the VMCB's save area; vmcb.c asserts them. */
#define SAVE_RFLAGS	0x170
#define SAVE_RIP	0x178
#define SAVE_RSP	0x1d8

	.section .text, "ax"

.macro PUSH_REGS
	push	%rbp
	push	%rbx
	push	%r12
	push	%r13
	push	%r14
	push	%r15
.endm

.macro POP_REGS
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbx
	pop	%rbp
.endm

/*
 * The image's address space has a copy of the page with these two functions, at the same address.
 * They use no stack.
 *
 * guard_cross_in(): into the image's address space. RSI: its CR3, RCX: its CR4, R8: hv_entry(). PGE
 * is clear in that CR4, so that loading it drops Linux's global translations: they may be for the
 * same addresses.
 *
 * guard_cross_out(): back. RSI: Linux's CR3, RCX: its CR4, RDX: where to go. CR3 is loaded without
 * its PCID first, since CR4.PCIDE may be clear until then; RDI is free.
 *
 * Neither has ENDBR: AMD's processors do not track indirect branches.
 */
	.balign	128
SYM_FUNC_START(guard_cross_in)
	ANNOTATE_NOENDBR
	mov	%rsi, %cr3
	mov	%rcx, %cr4
	ANNOTATE_RETPOLINE_SAFE
	jmp	*%r8
SYM_FUNC_END(guard_cross_in)

SYM_FUNC_START(guard_cross_out)
	ANNOTATE_NOENDBR
	mov	%rsi, %rdi
	and	$~0xfff, %rdi
	mov	%rdi, %cr3
	mov	%rcx, %cr4
	mov	%rsi, %cr3
	ANNOTATE_RETPOLINE_SAFE
	jmp	*%rdx
SYM_FUNC_END(guard_cross_out)
	/* An error if they are longer, and so may be in two pages. */
	.org	guard_cross_in + 128, 0x90

/*
 * long guard_switch_launch(struct vmcb_save_area *save, u64 cr3, void *hv_cpu, u64 cr4,
 *			    void *entry)
 *
 * Interrupts are off. The call of guard_cross_in() returns as the guest, with GIF set by VMRUN and
 * RAX as in @save; or, if the processor refuses VMRUN, without the guard, with GIF clear and a
 * negative errno. The image loads no segment register, so DS and ES are what they were.
 */
SYM_FUNC_START(guard_switch_launch)
	PUSH_REGS
	mov	%rsp, SAVE_RSP(%rdi)
	pushf
	pop	SAVE_RFLAGS(%rdi)
	lea	.Llaunched(%rip), %rax
	mov	%rax, SAVE_RIP(%rdi)
	clgi
	call	guard_cross_in
.Llaunched:
	test	%rax, %rax
	jz	1f
	stgi
1:	POP_REGS
	RET
SYM_FUNC_END(guard_switch_launch)

/*
 * long guard_switch_stop(void)
 *
 * Interrupts are off. If the guard agrees, the CPU continues after VMMCALL without it, with GIF
 * clear, and with the guard's DS and ES. A positive result means that the CPU has no guard.
 */
SYM_FUNC_START(guard_switch_stop)
	PUSH_REGS
	mov	%ds, %eax
	push	%rax
	mov	%es, %eax
	push	%rax
	movabs	$(HV_CALL + HV_CALL_STOP), %rax
	/* #UD: there is no guard, and RAX stays as it is. */
1:	vmmcall
2:	_ASM_EXTABLE(1b, 2b)
	pop	%rdx
	pop	%rcx
	test	%rax, %rax
	jnz	1f
	mov	%edx, %es
	mov	%ecx, %ds
	stgi
1:	POP_REGS
	RET
SYM_FUNC_END(guard_switch_stop)
