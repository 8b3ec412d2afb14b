/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The entries into ring 0 of the guest and the exits from it: exceptions and the
 * signal interrupt through the IDT, and SYSCALL through LSTAR. The functions that
 * they call are in trap.c, signal.c and syscall.c.
 *
 * Exceptions arrive on an IST stack: the red zone of the program (128 bytes
 * below RSP) must stay whole, and the processor would push its frame into it.
 * From there the entry moves the frame to the stack on which it is handled:
 * below the red zone of the interrupted stack, or, from ring 3, on the thread's
 * ring-0 stack. Writing to the interrupted stack may itself fault, so IST1 is
 * lowered by a step while a frame is still on it. Two steps are enough for a
 * stack in a part of the address space that is not in the page table yet
 * (dune_pf_early() adds it); a third means that the stack is not usable.
 * The fault of a write changes CR2, so a frame that is itself a page fault's is
 * dropped when the stack was added, and the program's instruction faults again.
 *
 * NMI, machine checks and interrupts of devices never reach the guest.
 */
#include "layout.h"

	.text

/* The upper part of struct dune_tf, from the frame at %rsi on the IST stack (layout.h). */
.macro PUSH_FRAME
	pushq	IST_SS(%rsi)
	pushq	IST_RSP(%rsi)
	pushq	IST_RFLAGS(%rsi)
	pushq	IST_CS(%rsi)
	pushq	IST_RIP(%rsi)
	pushq	IST_ERROR(%rsi)
	pushq	IST_VECTOR(%rsi)
	pushq	IST_RDI(%rsi)
	pushq	IST_RSI(%rsi)
.endm

/* The rest of struct dune_tf below rsi. */
.macro PUSH_REGS rcx=%rcx, r11=%r11
	pushq	%rdx
	pushq	\rcx
	pushq	%rax
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	\r11
	pushq	%rbx
	pushq	%rbp
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
.endm

.macro POP_REGS
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbp
	popq	%rbx
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rax
	popq	%rcx
	popq	%rdx
	popq	%rsi
	popq	%rdi
	addq	$16, %rsp		/* vector, error */
.endm

.macro DISPATCH
	movq	%rsp, %rdi
	movq	TF_VECTOR(%rsp), %rax
	leaq	dune_trap_table(%rip), %rcx
	call	*(%rcx, %rax, 8)
.endm

/*
 * dune_stubs: STUB_SIZE bytes for each vector of the IDT. Where the processor pushes no
 * error code, they push 0 in its place. STUBS_ALIGN is for dune_idt_init().
 *
 * dune_stubs_smap, for CR4.SMAP: ring 0 may be interrupted in common/copy.S with
 * AC set, and no handler may run with it. (From ring 3 AC is cleared with the
 * other flags.)
 */
.macro STUBS name, clac, page_fault=page_fault
	.globl	\name
	.hidden	\name
	.balign	STUBS_ALIGN
\name:
	vector = 0
	.rept	VEC_GATES
	.balign	STUB_SIZE
	\clac
	.if	!((1 << vector) & VECTORS_WITH_ERROR) || vector == VEC_SIGNAL
	pushq	$0
	.endif
	pushq	$vector
	.if	vector == VEC_PF
	jmp	\page_fault
	.elseif	vector == VEC_SIGNAL
	jmp	signal
	.elseif vector == VEC_DB
	jmp	debug
	.elseif vector == VEC_DF
	jmp	double_fault
	.else
	jmp	trap
	.endif
	vector = vector + 1
	.endr
.endm

	STUBS	dune_stubs
	STUBS	dune_stubs_smap, clac
	STUBS	dune_stubs_alone, page_fault=page_fault_alone
	STUBS	dune_stubs_alone_smap, clac, page_fault_alone

	.balign	16
page_fault:
	testb	$PF_PRESENT, (IST_ERROR - IST_VECTOR)(%rsp)
	jz	not_present
trap:
	pushq	%rdi
	pushq	%rsi
	movq	%rsp, %rsi
	cld
	testb	$3, IST_CS(%rsi)
	jnz	from_ring3
from_ring0:
	subq	$IST1_STEP, %gs:T_IST1
	testb	$(1 << (IST1_LEFT_BIT - 8)), %gs:(T_IST1 + 1)
	jz	bad_stack
	movq	IST_RSP(%rsi), %rdi
	leaq	-RED_ZONE(%rdi), %rsp
	andq	$-16, %rsp
	PUSH_FRAME
	addq	$IST1_STEP, %gs:T_IST1
	PUSH_REGS
	DISPATCH
return_ring0:
	POP_REGS
	iretq

/*
 * The interrupt for signals does not use the interrupted stack, which may be the
 * reason of the signal, unless that is the ring-0 stack itself.
 */
signal:
	pushq	%rdi
	pushq	%rsi
	movq	%rsp, %rsi
	cld
	testb	$3, IST_CS(%rsi)
	jnz	from_ring3
	movq	IST_RSP(%rsi), %rdi
	subq	%gs:T_SELF, %rdi
	subq	$RING0_STACK_BOTTOM, %rdi
	cmpq	$(RING0_STACK_TOP - RING0_STACK_BOTTOM), %rdi
	jbe	from_ring0
	movq	%gs:T_RING0_TOP, %rsp
	PUSH_FRAME
	PUSH_REGS
	DISPATCH
	jmp	return_ring0

from_ring3:
	swapgs
	movq	%gs:T_RING0_TOP, %rsp
	PUSH_FRAME
	PUSH_REGS
	pushq	$RFLAGS_RING0
	popfq
	DISPATCH
	testb	$3, TF_CS(%rsp)		/* a signal's handler is in ring 0 */
	jz	return_ring0
return_ring3:
	POP_REGS
	swapgs
	iretq

/* Calls dune_pf_early(). The zero flag is its result. */
.macro CALL_PF_EARLY
	pushq	%rax
	pushq	%rcx
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%r11
	cld
	movq	%cr2, %rdi
	call	dune_pf_early
	testb	%al, %al
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rdi
	popq	%rsi
	popq	%rdx
	popq	%rcx
	popq	%rax
.endm

/*
 * A page fault on a page that is not present. A page table is filled when it is needed. If
 * that is the only reason, it is filled here, on the IST stack and with any GS base.
 */
not_present:
	CALL_PF_EARLY
	jz	trap
	addq	$16, %rsp
	cmpw	$(IST1_TOP - IST_IRET_SIZE), %sp	/* blocks are aligned to 64 KB */
	jne	2f
1:	iretq
/* The fault interrupted PUSH_FRAME of from_ring0, with the frame to be moved at RSI. */
2:	cmpq	$VEC_PF, IST_VECTOR(%rsi)
	jne	1b
	addq	$IST1_STEP, %gs:T_IST1
	movq	%rsi, %rsp
	popq	%rsi
	popq	%rdi
	addq	$16, %rsp
	iretq

/*
 * The same page fault without a host half: it can come from the second level, which has a handler
 * of its own. And the hypercalls of dune_pf_early() need ring 0's GS there.
 */
page_fault_alone:
	testb	$(PF_NESTED >> 8), (IST_ERROR - IST_VECTOR + 1)(%rsp)
	jnz	3f
	testb	$PF_PRESENT, (IST_ERROR - IST_VECTOR)(%rsp)
	jnz	trap
	testb	$3, (IST_CS - IST_VECTOR)(%rsp)
	jnz	1f
	/*
	 * dune_pf_early() may not fault: the frame of such a fault is where that of the first one
	 * was, and both calls would use the same stack. This stack has a page.
	 */
	pushq	%rax
	movq	(8 + IST_RSP - IST_VECTOR)(%rsp), %rax
	xorq	%rsp, %rax
	shrq	$12, %rax
	popq	%rax
	jz	bad_stack
	jmp	not_present
1:	/* Ring 3 has nothing in the upper half. */
	pushq	%rax
	movq	%cr2, %rax
	testq	%rax, %rax
	popq	%rax
	js	trap
	swapgs
	CALL_PF_EARLY
	swapgs
	jz	trap
	addq	$16, %rsp
	iretq
3:	movb	$VEC_NESTED, (%rsp)
	jmp	trap

/*
 * A single step. SFMASK clears TF, so a step over SYSCALL ends after the call and
 * not in it. But Bochs looks at TF before the instruction, and steps into this
 * entry, with ring 3's GS (docs/emulators.md). That step is dropped.
 */
debug:
	pushq	%rax			/* above it: the vector, the error code, RIP */
	leaq	dune_lstar_vmx(%rip), %rax
	cmpq	%rax, (8 + IST_RIP - IST_VECTOR)(%rsp)
	je	1f
	leaq	dune_lstar_svm(%rip), %rax
	cmpq	%rax, (8 + IST_RIP - IST_VECTOR)(%rsp)
	je	1f
	popq	%rax
	jmp	trap
1:	popq	%rax
	addq	$16, %rsp
	iretq

/* A double fault uses IST2, a part of IST1's stack (layout.h): nothing returns from here. */
double_fault:
	testb	$3, (IST_CS - IST_VECTOR)(%rsp)
	jz	bad_stack
	swapgs
bad_stack:
	andq	$-16, %rsp
	jmp	dune_bad_stack

/*
 * dune_tf_resume: loads all registers from the struct dune_tf at RSP. Children of fork
 * start here, and special system calls of ring 0 end here.
 */
	.globl	dune_tf_resume
	.hidden	dune_tf_resume
dune_tf_resume:
	testb	$3, TF_CS(%rsp)
	jnz	return_ring3
	jmp	return_ring0

/*
 * dune_lstar_*: the target of SYSCALL, one for each vendor's hypercall
 * instruction (common/hypercall.c). RCX is the return address, R11 the flags;
 * interrupts are off (SFMASK).
 *
 * A SYSCALL of ring 0 becomes one hypercall, without a stack or a frame. The flags
 * are restored from R11 through memory below the red zone.
 */
.macro LSTAR vendor, hypercall
	.globl	dune_lstar_\vendor, dune_lstar_call_\vendor
	.globl	dune_lstar_popf_\vendor, dune_lstar_end_\vendor
	.hidden	dune_lstar_\vendor, dune_lstar_call_\vendor
	.hidden	dune_lstar_popf_\vendor, dune_lstar_end_\vendor
	.balign	64
dune_lstar_\vendor:
	btl	$IOPL_BIT, %r11d
	jnc	syscall_ring3
	cmpq	$SYSCALL_MAX, %rax
	jae	2f
	btq	%rax, dune_special(%rip)
	jc	special
1:	\hypercall
dune_lstar_call_\vendor:
	leaq	-RED_ZONE(%rsp), %rsp
	pushq	%r11
	popfq
dune_lstar_popf_\vendor:
	leaq	RED_ZONE(%rsp), %rsp
	jmp	*%rcx
dune_lstar_end_\vendor:

	/* The number is an int; the upper half of RAX does not count. */
2:	movl	%eax, %eax
	cmpq	$SYSCALL_MAX, %rax
	jb	dune_lstar_\vendor
	jmp	1b
.endm

	LSTAR	svm, vmmcall
	LSTAR	vmx, vmcall

/*
 * Calls of ring 0 that need a frame (common/special.h): on the ring-0 stack, from
 * its top or, if the caller runs on it, below the caller's red zone.
 */
special:
	movq	%rsp, %gs:T_USER_RSP
	movq	%rdi, %gs:T_SCRATCH
	movq	%rsp, %rdi
	subq	%gs:T_SELF, %rdi
	subq	$RING0_STACK_BOTTOM, %rdi
	cmpq	$(RING0_STACK_TOP - RING0_STACK_BOTTOM), %rdi
	jbe	1f
	movq	%gs:T_RING0_TOP, %rsp
	jmp	2f
1:	leaq	-RED_ZONE(%rsp), %rsp
	andq	$-16, %rsp
2:	pushq	$KERNEL_SS
	pushq	%gs:T_USER_RSP
	pushq	%r11
	pushq	$KERNEL_CS
	pushq	%rcx
	pushq	$0
	pushq	$VEC_SYSCALL
	pushq	%gs:T_SCRATCH
	pushq	%rsi
	PUSH_REGS
	movq	%rsp, %rdi
	call	dune_syscall_pass
	jmp	dune_tf_resume		/* rt_sigreturn may lead to ring 3 */

syscall_ring3:
	swapgs
	movq	%rsp, %gs:T_USER_RSP
	movq	%gs:T_RING0_TOP, %rsp
	pushq	$USER_SS
	pushq	%gs:T_USER_RSP
	pushq	%r11
	pushq	$USER_CS
	pushq	%rcx
	pushq	$0
	pushq	$VEC_SYSCALL
	pushq	%rdi
	pushq	%rsi
	PUSH_REGS
	pushq	$RFLAGS_RING0
	popfq
	movq	%rsp, %rdi
	call	*dune_syscall_handler(%rip)

	/*
	 * SYSRET faults in ring 0 on an address that is not canonical (Intel)
	 * and takes all flags from R11: use it only for an address in the lower
	 * half with flags that ring 3 may have, and IRET otherwise. The frame of
	 * a signal's handler in ring 0 differs in RCX and RIP, and leaves by IRET.
	 */
	movq	TF_RIP(%rsp), %rcx
	movq	TF_RFLAGS(%rsp), %r11
	cmpq	TF_RCX(%rsp), %rcx
	jne	dune_tf_resume
	cmpq	TF_R11(%rsp), %r11
	jne	return_ring3
	testl	$RFLAGS_NO_SYSRET, %r11d
	jnz	return_ring3
	movq	%rcx, %rax
	shrq	$47, %rax
	jnz	return_ring3
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbp
	popq	%rbx
	addq	$8, %rsp		/* r11 */
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rax
	addq	$8, %rsp		/* rcx */
	popq	%rdx
	popq	%rsi
	popq	%rdi
	movq	(TF_RSP - TF_VECTOR)(%rsp), %rsp
	swapgs
	sysretq

/* long dune_ring3_enter(const struct dune_tf *tf): see ring3.c */
	.globl	dune_ring3_enter
	.hidden	dune_ring3_enter
dune_ring3_enter:
	pushq	%rbx
	pushq	%rbp
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	pushfq
	cli
	movq	%rsp, %gs:T_LEAVE_RSP
	movq	%rdi, %rsp
	jmp	return_ring3

	.globl	dune_ring3_leave
dune_ring3_leave:
	movq	%gs:T_LEAVE_RSP, %rsp
	movq	%rdi, %rax
	popfq
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbp
	popq	%rbx
	ret

	.section .note.GNU-stack, "", @progbits
