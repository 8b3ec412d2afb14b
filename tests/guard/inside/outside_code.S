/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls and returns of dune-guard-outside that no compiler makes. */
#include <linux/linkage.h>

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
