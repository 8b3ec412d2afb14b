/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Exceptions of the image, and the accesses that may raise one.
 */
#include <linux/linkage.h>

	.text

/*
 * bool hv_rdmsr(u32 msr, u64 *value), bool hv_wrmsr(u32 msr, u64 value): #GP continues at
 * .Lrefused (hv_gp()).
 */
SYM_CODE_START(hv_rdmsr)
	mov	%edi, %ecx
.Lrdmsr:
	rdmsr
	mov	%eax, (%rsi)
	mov	%edx, 4(%rsi)
	mov	$1, %eax
	ret
SYM_CODE_END(hv_rdmsr)

SYM_CODE_START(hv_wrmsr)
	mov	%edi, %ecx
	mov	%esi, %eax
	mov	%rsi, %rdx
	shr	$32, %rdx
.Lwrmsr:
	wrmsr
	mov	$1, %eax
	ret
.Lrefused:
	xor	%eax, %eax
	ret
SYM_CODE_END(hv_wrmsr)

/*
 * #GP of the image. The frame is the error code, RIP, CS, RFLAGS, RSP, SS. It is left without IRET,
 * which would also unblock NMIs, perhaps in the midst of the guest's handler.
 */
SYM_CODE_START(hv_gp)
	lea	.Lrdmsr(%rip), %rax
	cmp	%rax, 8(%rsp)
	je	1f
	lea	.Lwrmsr(%rip), %rax
	cmp	%rax, 8(%rsp)
	jne	hv_fault
1:	mov	32(%rsp), %rsp
	jmp	.Lrefused
SYM_CODE_END(hv_gp)
