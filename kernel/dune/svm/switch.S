/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The world switch of SVM. The work around it is in enter.c. APM is the AMD64
 * Architecture Programmer's Manual, vol. 2.
 */
#include <linux/linkage.h>
#include <asm/alternative.h>
#include <asm/cpufeatures.h>

#include "x86/linux/untrain.h"
#include "x86/mitigations.h"
#include "x86/registers.h"
#include "x86/return_buffer.h"

	.section .text, "ax"

/*
 * void svm_switch(u64 vmcb_pa, struct dune_regs *regs, u64 host_pa)
 *
 * Interrupts are off. Between CLGI and STGI nothing can interrupt, not even an NMI: the
 * CPU has the guest's FS, GS and TR there. RFLAGS.IF is set for VMRUN, since with
 * V_INTR_MASKING it decides whether an interrupt of the host ends the guest (APM
 * 15.21.1).
 *
 * VMLOAD after each exit is necessary for TR: LTR refuses a busy TSS descriptor (vol. 3,
 * LTR). FS, GS and the system-call MSRs come with VMLOAD at no additional cost (APM
 * 15.5.2). LDTR is null after VMLOAD: the caller reloads it.
 */
SYM_FUNC_START(svm_switch)
	push	%rbp
	push	%rbx
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	push	%rdx
	push	%rsi

	CLEAR_DIVIDER
	mov	%rdi, %rax
	mov	%rsi, %rdx
	clgi
	sti
	vmload	%rax

	LOAD_REGS %rdx
	mov	REGS_RDI(%rdx), %rdi
	mov	REGS_RDX(%rdx), %rdx

	CLEAR_BUFFERS_BEFORE_GUEST

	/* RAX and RSP are switched by the processor. */
	vmrun	%rax
	vmsave	%rax

	mov	8(%rsp), %rax
	vmload	%rax
	mov	(%rsp), %rax
	STORE_REGS %rax
	mov	%rdx, REGS_RDX(%rax)
	mov	%rdi, REGS_RDI(%rax)
	cli
	stgi

	/* The guest's predictions must not steer the kernel (return_buffer.h). */
	FILL_TWO_RETURNS
	UNTRAIN_RET_VM

	CLEAR_REGS
	pop	%rsi
	pop	%rdx
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbx
	pop	%rbp
	RET
SYM_FUNC_END(svm_switch)
