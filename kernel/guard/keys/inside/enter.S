/* SPDX-License-Identifier: GPL-2.0-only */
/* The only way into the inside, and the only way out. */
#include <linux/linkage.h>
#include <linux/objtool.h>
#include <asm-generic/errno-base.h>

#include "guard/keys/inside/exchange.h"
#include "guard/keys/inside/inside.h"

	.section .bss.guard.stacks, "aw", @nobits
	.balign	4096
	.globl	keys_stacks
keys_stacks:
	.skip	KEYS_STACKS * KEYS_STACK

	/* Nothing, at the start of a page. */
	.section .rodata, "a"
	.balign	4096
	.globl	keys_rodata
keys_rodata:

	.section .bss, "aw", @nobits
	.balign	4
keys_busy:
	.skip	4

	.section .text, "ax"
	.balign	4096

/*
 * long keys_enter(void)
 *
 * One CPU at a time is inside; another one is refused. A guard enters on one of the private stacks,
 * of which the part that is used is cleared at the end. Without a guard, RSP is on a stack of the
 * kernel's: then the first private stack is used, and all of it is cleared, since interrupts of the
 * kernel use it, too.
 *
 * keys_work() ends with a jump to keys_leave, and not with RET: see Makefile. So there is no RET
 * and no call inside, and what the kernel does against attacks on return predictions is
 * needed at the last instruction alone.
 */
SYM_FUNC_START(keys_enter)
	lock btsl $0, keys_busy(%rip)
	jc	.Lbusy
	cld
	mov	%rsp, %rax
	lea	keys_stacks(%rip), %rdx
	mov	%rsp, %rcx
	sub	%rdx, %rcx
	cmp	$KEYS_STACKS * KEYS_STACK, %rcx
	jb	.Lgiven
	lea	KEYS_STACK(%rdx), %rsp
	mov	$KEYS_STACK / 8, %ecx
	xor	%edi, %edi
	jmp	.Lwork
.Lgiven:
	and	$-16, %rsp
	lea	-KEYS_USED(%rsp), %rdx
	mov	$KEYS_USED / 8, %ecx
	mov	$1, %edi
.Lwork:
	push	%rax
	push	%rdx
	push	%rcx	/* in the place of a return address */
	jmp	keys_work

/* RAX: the result. All other registers that a function may change are secret. */
SYM_INNER_LABEL(keys_leave, SYM_L_GLOBAL)
	pop	%rcx
	pop	%rdi
	pop	%rsp
	mov	%rax, %rdx
	xor	%eax, %eax
	rep stosq
	mov	%rdx, %rax
	xor	%ecx, %ecx
	xor	%edx, %edx
	xor	%esi, %esi
	xor	%edi, %edi
	xor	%r8d, %r8d
	xor	%r9d, %r9d
	xor	%r10d, %r10d
	xor	%r11d, %r11d
	movl	$0, keys_busy(%rip)
	RET
.Lbusy:
	mov	$-EBUSY, %rax
	RET
SYM_FUNC_END(keys_enter)
STACK_FRAME_NON_STANDARD keys_enter
