/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Instructions of the guest half that may fault on memory of the program, and the
 * library's memcpy() and memset(), which must not fault.
 *
 * For each instruction that may fault there is a place at which execution continues
 * with -EFAULT (fixup.c): after an exception in the guest (guest/trap.c), and after a fault of
 * the process's mappings (host/fault.c or, without a host half, alone/fault.c).
 *
 * Where SMAP is on, RFLAGS.AC is set around the instruction, so that it may reach pages
 * of ring 3.
 */
#include "layout.h"

	.text

.macro USER_ACCESS instruction
	cmpb	$0, dune_process + P_SMAP(%rip)
	je	9f
	\instruction
9:
.endm

/* long dune_copy(dst, src, n) */
	.globl	dune_copy, dune_copy_insn, dune_copy_rest_insn, dune_copy_fail
	.hidden	dune_copy_insn, dune_copy_rest_insn, dune_copy_fail
dune_copy:
	movq	%rdx, %rcx
	shrq	$3, %rcx
	USER_ACCESS stac
dune_copy_insn:
	rep movsq
	movl	%edx, %ecx
	andl	$7, %ecx
	jz	1f
dune_copy_rest_insn:
	rep movsb
1:	USER_ACCESS clac
	xorl	%eax, %eax
	ret
dune_copy_fail:
	USER_ACCESS clac
	movq	$EFAULT_RESULT, %rax
	ret

/* long dune_probe_write(p): returns 0 if the byte at p can be written, or -EFAULT */
	.globl	dune_probe_write, dune_probe_insn, dune_probe_fail
	.hidden	dune_probe_write, dune_probe_insn, dune_probe_fail
dune_probe_write:
	USER_ACCESS stac
dune_probe_insn:
	lock orb $0, (%rdi)
	USER_ACCESS clac
	xorl	%eax, %eax
	ret
dune_probe_fail:
	USER_ACCESS clac
	movq	$EFAULT_RESULT, %rax
	ret

/* long dune_xrstor(area, features): XRSTOR, which also faults on a damaged area */
	.globl	dune_xrstor, dune_xrstor_insn, dune_xrstor_fail
	.hidden	dune_xrstor, dune_xrstor_insn, dune_xrstor_fail
dune_xrstor:
	movl	%esi, %eax
	movq	%rsi, %rdx
	shrq	$32, %rdx
	USER_ACCESS stac
dune_xrstor_insn:
	xrstor64 (%rdi)
	USER_ACCESS clac
	xorl	%eax, %eax
	ret
dune_xrstor_fail:
	USER_ACCESS clac
	movq	$EFAULT_RESULT, %rax
	ret

/* long dune_fxrstor(area): the same for FXRSTOR */
	.globl	dune_fxrstor, dune_fxrstor_insn, dune_fxrstor_fail
	.hidden	dune_fxrstor, dune_fxrstor_insn, dune_fxrstor_fail
dune_fxrstor:
	USER_ACCESS stac
dune_fxrstor_insn:
	fxrstor64 (%rdi)
	USER_ACCESS clac
	xorl	%eax, %eax
	ret
dune_fxrstor_fail:
	USER_ACCESS clac
	movq	$EFAULT_RESULT, %rax
	ret

	.globl	dune_memcpy, dune_memset
	.hidden	dune_memcpy, dune_memset
dune_memcpy:
	movq	%rdi, %rax
	movq	%rdx, %rcx
	shrq	$3, %rcx
	rep movsq
	movl	%edx, %ecx
	andl	$7, %ecx
	jz	1f
	rep movsb
1:	ret
dune_memset:
	movq	%rdi, %r8
	movzbl	%sil, %esi
	movabsq	$0x0101010101010101, %rax
	imulq	%rsi, %rax
	movq	%rdx, %rcx
	shrq	$3, %rcx
	rep stosq
	movl	%edx, %ecx
	andl	$7, %ecx
	jz	1f
	rep stosb
1:	movq	%r8, %rax
	ret

	.section .note.GNU-stack, "", @progbits
