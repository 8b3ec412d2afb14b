/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The world switch of VT-x. The work around it is in enter.c. SDM is the Intel 64
 * and IA-32 Architectures Software Developer's Manual, vol. 3.
 */
#include <linux/linkage.h>
#include <asm/alternative.h>
#include <asm/asm.h>
#include <asm/cpufeatures.h>
#include <asm/msr-index.h>
#include <asm/unwind_hints.h>

#include "x86/linux/untrain.h"
#include "x86/mitigations.h"
#include "x86/registers.h"
#include "x86/return_buffer.h"

/* The field of the VMCS (SDM appendix B.4.4). */
#define HOST_RSP	0x6c14

	.section .text, "ax"

/*
 * bool vmx_switch(struct dune_regs *regs, bool launched, u64 *host_rsp)
 *
 * Interrupts are off, and the VMCS is current. RSP, RIP and RFLAGS of the guest are in the
 * VMCS; the other registers are switched here. Returns true if there was no entry (VMfail).
 */
SYM_FUNC_START(vmx_switch)
	push	%rbp
	push	%rbx
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	push	%rdi

	/* RSP is the same as last time in most cases. */
	cmp	%rsp, (%rdx)
	je	1f
	mov	%rsp, (%rdx)
	mov	$HOST_RSP, %eax
	vmwrite	%rsp, %rax
1:
	/* CF survives until the jump below: VERW changes ZF only. */
	bt	$0, %esi

	LOAD_REGS %rdi
	mov	REGS_RAX(%rdi), %rax
	mov	REGS_RDX(%rdi), %rdx
	mov	REGS_RDI(%rdi), %rdi

	CLEAR_BUFFERS_BEFORE_GUEST

	UNWIND_HINT_SAVE
	jnc	2f
	vmresume
	jmp	3f
2:	vmlaunch
3:	/* No entry: the guest's registers in memory are unchanged. */
	mov	$1, %ebx
	jmp	.Lhost

/* The host RIP in the VMCS. */
SYM_INNER_LABEL(vmx_switch_exit, SYM_L_GLOBAL)
	UNWIND_HINT_RESTORE
	ANNOTATE_NOENDBR
	push	%rdi
	mov	8(%rsp), %rdi
	STORE_REGS %rdi
	mov	%rax, REGS_RAX(%rdi)
	mov	%rdx, REGS_RDX(%rdi)
	pop	REGS_RDI(%rdi)
	xor	%ebx, %ebx

.Lhost:
	/*
	 * The guest's predictions must not steer the kernel (return_buffer.h). If the
	 * kernel restricts indirect branches itself (IBRS), the MSR must be written
	 * again after each change to a more privileged mode, as an exit is.
	 */
	FILL_TWO_RETURNS
	ALTERNATIVE "jmp .Lrestricted", "", X86_FEATURE_KERNEL_IBRS
	mov	$MSR_IA32_SPEC_CTRL, %ecx
	rdmsr
	wrmsr
.Lrestricted:
	CLEAR_BRANCH_HISTORY_VMEXIT
	CLEAR_REGS
	xor	%edx, %edx
	xor	%esi, %esi
	mov	%ebx, %eax
	add	$8, %rsp
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbx
	pop	%rbp
	RET
SYM_FUNC_END(vmx_switch)
