/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel's own macros of <asm/nospec-branch.h> refer to, and newer
 * kernels export to KVM alone: the same under the same names, within this
 * module.
 */
#include <linux/linkage.h>
#include <linux/objtool.h>
#include <asm/msr-index.h>
#include <asm/segment.h>

#include "virt/compat.h"

/*
 * CLEAR_BUFFERS_BEFORE_GUEST: VERW with the selector of a writable data segment in
 * memory also clears what buffers hold of others' data, on processors that
 * leak it.
 */
	.section .rodata, "a"
	.balign 2
SYM_DATA(x86_verw_sel, .word __KERNEL_DS)

/*
 * UNTRAIN_RET_VM: forget all predictions of branches. Clobbers RAX, RCX and
 * RDX, as the macro's users expect. Processors that keep predictions of
 * returns (X86_BUG_IBPB_NO_RET) get the return stack buffer overwritten too,
 * here all of them.
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
 * CLEAR_BRANCH_HISTORY_VMEXIT: so many branches are taken that no trace of
 * earlier ones is left in the branch history. The sequence is Intel's (Branch
 * History Injection and Intra-mode Branch Target Injection, "software
 * BHB-clearing sequence"). Clobbers RAX and RCX.
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
