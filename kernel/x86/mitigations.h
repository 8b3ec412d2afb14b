/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For the world switches: what is done right before a guest runs, against
 * what it could learn. After it: return_buffer.h, and macros of the kernel's.
 * All of it, with KVM's beside it, is listed in docs/mitigations.md.
 */
#ifndef DUNE_MITIGATIONS_H
#define DUNE_MITIGATIONS_H

#include <asm/alternative.h>
#include <asm/cpufeatures.h>

#include "virt/compat.h"

/*
 * The kernel decides separately whether buffers are cleared before user mode
 * and before a guest (tsa=user, tsa=vm). A guest here is both. Touches ZF only.
 */
.macro CLEAR_BUFFERS_BEFORE_GUEST
	ALTERNATIVE_2 "jmp .Lbuffers_cleared", "", X86_FEATURE_CLEAR_CPU_BUF, \
		"", X86_FEATURE_CLEAR_CPU_BUF_VM
	verw	x86_verw_sel(%rip)
.Lbuffers_cleared:
.endm

/*
 * A division by zero leaves its quotient in the divider, for others to see:
 * one of the host's own replaces it (Zen 1). Since 6.5, and in older ones'
 * updates. Clobbers RAX, RCX, RDX and flags where it is needed.
 */
.macro CLEAR_DIVIDER
#ifdef X86_BUG_DIV0
	ALTERNATIVE "", "xor %eax, %eax; cltd; lea 1(%rax), %ecx; div %ecx", \
		X86_BUG_DIV0
#endif
.endm

#endif /* DUNE_MITIGATIONS_H */
