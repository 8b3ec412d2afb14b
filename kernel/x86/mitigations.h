/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For the world switches: macros to be executed right before a guest runs, so that it
 * cannot learn others' data. Those for the time after it are in return_buffer.h and
 * linux/untrain.h. docs/mitigations.md lists all of them next to what KVM does.
 */
#ifndef X86_MITIGATIONS_H
#define X86_MITIGATIONS_H

#include <asm/alternative.h>
#include <asm/cpufeatures.h>

#include "x86/compat.h"

/*
 * The kernel decides separately whether buffers are cleared before user mode and
 * before a guest (tsa=user, tsa=vm). A Dune process is user mode and a guest at once, so
 * either decision clears them. Changes ZF only.
 */
.macro CLEAR_BUFFERS_BEFORE_GUEST
	ALTERNATIVE_2 "jmp .Lbuffers_cleared_\@", "", X86_FEATURE_CLEAR_CPU_BUF, \
		"", X86_FEATURE_CLEAR_CPU_BUF_VM
	verw	x86_verw_sel(%rip)
.Lbuffers_cleared_\@:
.endm

/*
 * On Zen 1 a division by zero leaves the quotient of an earlier division visible to
 * others (CVE-2023-20588, AMD-SB-7007): a division by the host replaces it. Kernels report
 * the bug since 6.5, and in updates of older ones. Clobbers RAX, RCX, RDX and flags if it
 * is needed.
 */
.macro CLEAR_DIVIDER
#ifdef X86_BUG_DIV0
	ALTERNATIVE "", "xor %eax, %eax; cltd; lea 1(%rax), %ecx; div %ecx", \
		X86_BUG_DIV0
#endif
.endm

#endif /* X86_MITIGATIONS_H */
