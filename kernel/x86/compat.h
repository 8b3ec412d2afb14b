/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernels in what they call the processor's registers, bits
 * and instructions. This header gives older kernels the names of the newer ones, so
 * that all other code is written for the newest. What needs more of the kernel's headers
 * than x86/ may include, and differences in the kernel's own functions, is in virt/compat.h.
 *
 * A feature of the kernel is seen by its macros: the version number does not tell what a
 * distribution has put into a kernel.
 */
#ifndef X86_COMPAT_H
#define X86_COMPAT_H

#ifdef __ASSEMBLER__

#include <asm/nospec-branch.h>

/*
 * Since 6.2. Before, one macro serves every kind of entry, and KVM adds the
 * barrier that only an exit needs (spec_rstack_overflow=ibpb-vmexit).
 */
#ifndef UNTRAIN_RET_VM
.macro UNTRAIN_RET_VM
	UNTRAIN_RET
#ifdef X86_FEATURE_IBPB_ON_VMEXIT
	ALTERNATIVE "", "call entry_ibpb", X86_FEATURE_IBPB_ON_VMEXIT
#endif
.endm
#endif

/* Since 6.16, and in updates of older kernels. Before, one flag means both. */
#ifndef X86_FEATURE_CLEAR_CPU_BUF_VM
#define X86_FEATURE_CLEAR_CPU_BUF_VM	X86_FEATURE_CLEAR_CPU_BUF
#endif

/*
 * Since 6.9, and in updates of older kernels: for processors whose predictions depend on
 * what was executed before. It is a macro of the assembler, so it is seen by the name
 * of the feature.
 */
#if !defined(X86_FEATURE_CLEAR_BHB_VMEXIT) && \
	!defined(X86_FEATURE_CLEAR_BHB_LOOP_ON_VMEXIT)
#define CLEAR_BRANCH_HISTORY_VMEXIT
#endif

#else /* !__ASSEMBLER__ */

#include <asm/msr-index.h>
#include <asm/svm.h>

/* Since 6.6 the lock bit of VM_CR has one name for both vendors' uses. */
#ifndef SVM_VM_CR_SVM_DISABLE
#define SVM_VM_CR_SVM_DISABLE	4
#endif

/* Since 6.13, and in updates of older kernels (virt/compat.h: kernel_reduces_speculation()). */
#ifndef MSR_ZEN4_BP_CFG_BP_SPEC_REDUCE_BIT
#define MSR_ZEN4_BP_CFG_BP_SPEC_REDUCE_BIT	4
#endif

/* Since 7.0 this word of the VMCB has a name for all of its bits. */
#ifndef SVM_MISC_ENABLE_NP
#define SVM_MISC_ENABLE_NP	SVM_NESTED_CTL_NP_ENABLE
#define misc_ctl		nested_ctl
#endif

#endif /* __ASSEMBLER__ */

#endif /* X86_COMPAT_H */
