/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The way in and out, and the loop around VMRUN. The instructions that change CR3 are in
 * guard/linux/switch.S, in a page that both address spaces have at the same address.
 */
#include <linux/linkage.h>

#include "guard/hv/hv.h"
#include "x86/registers.h"

	.text

/*
 * Called by guard_cross_in(), with GIF clear, in the image's address space; RDX: struct hv_cpu. It
 * returns as the guest, after the first VMRUN, to the RIP in the VMCB, which finds its registers on
 * its stack. If the processor refuses the VMRUN it returns without the guest.
 */
SYM_CODE_START(hv_entry)
	mov	%rdx, %rsp
	cld
	mov	%rsp, %rdi
	call	hv_start_cpu

	/*
	 * VMRUN: RAX is the VMCB. RSP is the host's at the exit, too: struct hv_cpu, which begins
	 * with the guest's registers. FS, GS, TR, LDTR and the MSRs of system calls stay the
	 * guest's at an exit (APM 15.5.2); the image uses none of them.
	 */
.Lrun:
	vmrun	%rax
	STORE_REGS %rsp
	mov	%rdx, REGS_RDX(%rsp)
	mov	%rdi, REGS_RDI(%rsp)
	/*
	 * The compiler pushes RBP, and no other register: it preserves none (Kbuild). Nothing of
	 * the guest's gets into the stack.
	 */
	xor	%ebp, %ebp
	mov	%rsp, %rdi
	call	hv_exit
	/* struct hv_next */
	test	%rax, %rax
	jz	.Lleave
	LOAD_REGS %rdx
	mov	REGS_RDI(%rdx), %rdi
	mov	REGS_RDX(%rdx), %rdx
	jmp	.Lrun

	/*
	 * Continues Linux after its VMMCALL, or where a refused VMRUN would have continued it,
	 * without a hypervisor: with GIF still clear, and with all registers but RAX, RIP and RSP
	 * undefined. Those that are loaded here are guard_cross_out()'s arguments.
	 */
.Lleave:
	lgdt	(HV_CPU_LEAVE_GDT + 6)(%rsp)
	lidt	(HV_CPU_LEAVE_IDT + 6)(%rsp)
	mov	HV_CPU_LEAVE_DR6(%rsp), %rax
	mov	%rax, %dr6
	mov	HV_CPU_LEAVE_DR7(%rsp), %rax
	mov	%rax, %dr7
	mov	HV_CPU_LEAVE_CR0(%rsp), %rax
	mov	%rax, %cr0
	mov	HV_CPU_LEAVE_CR3(%rsp), %rsi
	mov	HV_CPU_LEAVE_CR4(%rsp), %rcx
	mov	HV_CPU_LEAVE_RIP(%rsp), %rdx
	mov	HV_CPU_LEAVE_RESULT(%rsp), %rax
	mov	HV_CPU_LEAVE_CROSS(%rsp), %rdi
	mov	HV_CPU_LEAVE_RSP(%rsp), %rsp
	jmp	*%rdi
SYM_CODE_END(hv_entry)
