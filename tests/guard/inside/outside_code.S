/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls and returns of dune-guard-outside that no compiler makes. */
#include <linux/linkage.h>
#include <asm/segment.h>

#include "callee_saved.S"

	.text

/* u64 outside_jump(const void *to, const u64 *from): calls @to with @from as its argument. */
SYM_FUNC_START(outside_jump)
	mov	%rdi, %rax
	mov	%rsi, %rdi
	call	*%rax
	jmp	__x86_return_thunk
SYM_FUNC_END(outside_jump)

/* u64 outside_return_into(const void *to, const u64 *from): returns to @to. */
SYM_FUNC_START(outside_return_into)
	mov	%rdi, %rax
	mov	%rsi, %rdi
	lea	1f(%rip), %rcx
	push	%rcx
	push	%rax
	ret
1:	jmp	__x86_return_thunk
SYM_FUNC_END(outside_return_into)

/*
 * u64 outside_call_from(const void *to, const u64 *from, const void *address): calls @to with a
 * return address of our choice, and with ours above it.
 */
SYM_FUNC_START(outside_call_from)
	mov	%rdi, %rax
	mov	%rsi, %rdi
	lea	1f(%rip), %rcx
	push	%rcx
	push	%rdx
	jmp	*%rax
1:	jmp	__x86_return_thunk
SYM_FUNC_END(outside_call_from)

/* u64 outside_replay(const void *to, const u64 *from): continues at @to with raw_call()'s frame. */
SYM_FUNC_START(outside_replay)
	push	%rbx
	lea	1f(%rip), %rcx
	push	%rcx
	push	%rbx
	mov	%rsi, %rbx
	jmp	*%rdi
1:	pop	%rbx
	jmp	__x86_return_thunk
SYM_FUNC_END(outside_replay)

/* u64 outside_with_direction(const void *to): calls @to with DF set. */
SYM_FUNC_START(outside_with_direction)
	std
	call	*%rdi
	cld
	jmp	__x86_return_thunk
SYM_FUNC_END(outside_with_direction)

/* u64 outside_with_trap(const void *to): calls @to with TF set. */
SYM_FUNC_START(outside_with_trap)
	pushf
	pushf
	orl	$0x100, (%rsp)
	popf
	call	*%rdi
	popf
	jmp	__x86_return_thunk
SYM_FUNC_END(outside_with_trap)

/* u64 outside_interrupt_return(const void *to, const u64 *from): calls @to by an IRET. */
SYM_FUNC_START(outside_interrupt_return)
	mov	%rdi, %rax
	mov	%rsi, %rdi
	lea	1f(%rip), %rcx
	push	%rcx
	mov	%rsp, %rcx
	mov	%ss, %edx
	push	%rdx
	push	%rcx
	pushf
	mov	%cs, %edx
	push	%rdx
	push	%rax
	iretq
1:	jmp	__x86_return_thunk
SYM_FUNC_END(outside_interrupt_return)

/* u64 outside_far_return(const void *to, const u64 *from): calls @to by a far return. */
SYM_FUNC_START(outside_far_return)
	mov	%rdi, %rax
	mov	%rsi, %rdi
	lea	1f(%rip), %rcx
	push	%rcx
	mov	%cs, %edx
	push	%rdx
	push	%rax
	lretq
1:	jmp	__x86_return_thunk
SYM_FUNC_END(outside_far_return)

/*
 * The next two call @to in ring 3, on this stack; they return RAX then. Each exception leads to
 * outside_ring_trap, or to outside_ring_trap_without_error.
 */
.macro TO_RING_3
	PUSH_CALLEE_SAVED
	mov	%rsp, outside_ring_sp(%rip)
	mov	%rdi, %rcx
	mov	%rsi, %rdi
	lea	outside_ring_landing(%rip), %rdx
	push	%rdx
	mov	%rsp, %rdx
	xor	%eax, %eax
.endm

/* u64 outside_by_sysret(const void *to, const u64 *from) */
SYM_FUNC_START(outside_by_sysret)
	TO_RING_3
	mov	$2, %r11d
	sysretq
SYM_FUNC_END(outside_by_sysret)

/* u64 outside_by_iret(const void *to, const u64 *from) */
SYM_FUNC_START(outside_by_iret)
	TO_RING_3
	push	$__USER_DS
	push	%rdx
	push	$2
	push	$__USER_CS
	push	%rcx
	iretq
SYM_FUNC_END(outside_by_iret)

SYM_CODE_START(outside_ring_trap_without_error)
	push	$0
SYM_INNER_LABEL(outside_ring_trap, SYM_L_GLOBAL)
	pop	outside_ring_error(%rip)
outside_ring_landing:
	mov	$__KERNEL_DS, %edx
	mov	%edx, %ss
	mov	outside_ring_sp(%rip), %rsp
	POP_CALLEE_SAVED
	jmp	__x86_return_thunk
SYM_CODE_END(outside_ring_trap_without_error)

/* raw_call()'s callee, which changes the register that raw_call() has its pointer in. */
SYM_FUNC_START(outside_clobbers)
	mov	%rdi, %rbx
	xor	%eax, %eax
	jmp	__x86_return_thunk
SYM_FUNC_END(outside_clobbers)

/* raw_call()'s callee, whose last call is a jump to an entry point. */
SYM_FUNC_START(outside_jumps_back)
	jmp	*outside_target(%rip)
SYM_FUNC_END(outside_jumps_back)

/* site_call()'s callee, which patches the site meanwhile. */
SYM_FUNC_START(outside_patches)
	call	*outside_meanwhile(%rip)
	mov	outside_rcx(%rip), %rcx
	jmp	__x86_return_thunk
SYM_FUNC_END(outside_patches)

/* raw_call()'s callee: raw_call() returns elsewhere, with its own return address in RSI. */
SYM_FUNC_START(outside_leads_return)
	mov	16(%rsp), %rsi
	mov	outside_return_to(%rip), %rax
	mov	%rax, 16(%rsp)
	mov	outside_rcx(%rip), %rcx
	jmp	__x86_return_thunk
SYM_FUNC_END(outside_leads_return)

/*
 * raw_call()'s callee, which returns from another place of the stack. The frame there is the return
 * address, RBX, and raw_call()'s own return address.
 */
SYM_FUNC_START(outside_elsewhere)
	pop	%rax
	mov	(%rsp), %rcx
	lea	1f(%rip), %rdx
	push	%rdx
	push	%rcx
	push	%rax
	ret
1:	pop	%rbx
	jmp	__x86_return_thunk
SYM_FUNC_END(outside_elsewhere)
