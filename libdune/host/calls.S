/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * System calls and probes of the host half that a signal for the guest can cancel before they
 * start.
 *
 * The host half must not start a system call that may block while a signal
 * waits for the guest. There is a window between its test and the instruction:
 * when a signal arrives in this window, the handler (signal.c) moves RIP to
 * dune_host_abort. The same holds for a call that the kernel has set up to be
 * restarted: RIP is then at the instruction. In both cases the result is
 * DUNE_AGAIN: the program's handler runs first, then the call is made again.
 */
#include "layout.h"
#include <asm/unistd_64.h>

	.text

/*
 * Move C's arguments (t, nr, a0 to a4) to where a system call takes its number and arguments;
 * t goes to R11.
 */
	.macro	set_call
	movq	%rdi, %r11
	movq	%rsi, %rax
	movq	%rdx, %rdi
	movq	%rcx, %rsi
	movq	%r8, %rdx
	movq	%r9, %r10
	movq	8(%rsp), %r8
	.endm

/* long dune_host_syscall(t, nr, a0, a1, a2, a3, a4, a5) */
	.globl	dune_host_syscall, dune_host_abort_begin, dune_host_abort_insn
	.globl	dune_host_abort_done, dune_host_abort
	.hidden	dune_host_syscall, dune_host_abort_begin, dune_host_abort_insn
	.hidden	dune_host_abort_done, dune_host_abort
dune_host_syscall:
	set_call
	movq	16(%rsp), %r9
dune_host_abort_begin:
	cmpl	$0, T_NSIG(%r11)
	jne	dune_host_abort
dune_host_abort_insn:
	syscall
dune_host_abort_done:
	ret
dune_host_abort:
	movq	$DUNE_AGAIN_RESULT, %rax
	ret

/*
 * long dune_host_clone(t, nr, a0, a1, a2, a3, a4): as dune_host_syscall(), but
 * a child continues in dune_host_begin (entry.S), since on a new stack it has no caller to return
 * to. It finds its block by its stack, which is either its own copy of this stack, or the top of
 * a new one.
 */
	.globl	dune_host_clone, dune_host_clone_begin, dune_host_clone_insn
	.hidden	dune_host_clone, dune_host_clone_begin, dune_host_clone_insn
dune_host_clone:
	set_call
dune_host_clone_begin:
	cmpl	$0, T_NSIG(%r11)
	jne	dune_host_abort
dune_host_clone_insn:
	syscall
	testq	%rax, %rax
	jz	1f
	ret
1:	leaq	-8(%rsp), %rdi
	andq	$-BLOCK_SIZE, %rdi
	jmp	dune_host_begin

/*
 * long dune_host_probe_read(p, nsig), long dune_host_probe_write(p, nsig): probe a byte in
 * user mode, as the program would, if *nsig is 0. They return 0, or -1 if that raised a signal
 * with a handler (the host half's handler has moved RIP to dune_host_probe_fail) or if a signal
 * was queued. A signal that comes between the test of *nsig and the probe moves RIP, too.
 */
	.globl	dune_host_probe_read, dune_host_probe_read_insn
	.hidden	dune_host_probe_read, dune_host_probe_read_insn
dune_host_probe_read:
	cmpl	$0, (%rsi)
	jne	dune_host_probe_fail
dune_host_probe_read_insn:
	movb	(%rdi), %al
	xorl	%eax, %eax
	ret
	.globl	dune_host_probe_write, dune_host_probe_write_insn
	.globl	dune_host_probe_fail
	.hidden	dune_host_probe_write, dune_host_probe_write_insn
	.hidden	dune_host_probe_fail
dune_host_probe_write:
	cmpl	$0, (%rsi)
	jne	dune_host_probe_fail
dune_host_probe_write_insn:
	lock orb $0, (%rdi)
	xorl	%eax, %eax
	ret
dune_host_probe_fail:
	movq	$-1, %rax
	ret

/* Where the handler of a host signal returns to. */
	.globl	dune_host_restorer
	.hidden	dune_host_restorer
dune_host_restorer:
	movl	$__NR_rt_sigreturn, %eax
	syscall

	.section .note.GNU-stack, "", @progbits
