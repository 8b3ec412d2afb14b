/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions that the kernel's macros of <asm/nospec-branch.h> call, and which newer
 * kernels export to KVM alone. This module has its own, with the same names and
 * the same effects. (x86_verw_sel, to which these macros refer, too, is in x86/verw.S.)
 */
#include <linux/linkage.h>
#include <linux/objtool.h>
#include <asm/msr-index.h>
#include <asm/nospec-branch.h>

/*
 * For UNTRAIN_RET_VM: clears all predictions of branches. Clobbers
 * RAX, RCX and RDX, as the macro's users expect. Some processors keep predictions of
 * returns (X86_BUG_IBPB_NO_RET), so the return stack buffer is overwritten, too; here
 * on all processors.
 */
	.section .text, "ax"
SYM_FUNC_START(write_ibpb)
	mov	$MSR_IA32_PRED_CMD, %ecx
	mov	$PRED_CMD_IBPB, %eax
	xor	%edx, %edx
	wrmsr
	__FILL_RETURN_BUFFER(%rax, RSB_CLEAR_LOOPS)
	RET
SYM_FUNC_END(write_ibpb)

/*
 * For CLEAR_BRANCH_HISTORY_VMEXIT: takes so many branches that no trace of earlier
 * ones is left in the branch history. The sequence is Intel's (Branch History
 * Injection and Intra-mode Branch Target Injection, "software BHB-clearing
 * sequence"). Clobbers RAX and RCX.
 */
SYM_FUNC_START(clear_bhb_loop)
	mov	$5, %ecx
	ANNOTATE_INTRA_FUNCTION_CALL
	call	.Lbhb_outer
	jmp	.Lbhb_done
	.balign	64, 0xcc
.Lbhb_outer:
	ANNOTATE_INTRA_FUNCTION_CALL
	call	.Lbhb_inner
	RET
	.balign	64, 0xcc
.Lbhb_inner:
	mov	$5, %eax
.Lbhb_next:
	jmp	.Lbhb_count
	nop
.Lbhb_count:
	sub	$1, %eax
	jnz	.Lbhb_next
	sub	$1, %ecx
	jnz	.Lbhb_outer
	RET
.Lbhb_done:
	lfence
	RET
SYM_FUNC_END(clear_bhb_loop)
STACK_FRAME_NON_STANDARD(clear_bhb_loop)
