/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernels in what they call the processor's registers, bits
 * and instructions. This header gives older kernels the names of the newer ones, so
 * that other code is written for the newest. (One difference is elsewhere: CLEAR_DIVIDER in
 * mitigations.h is empty if the kernel does not name the bug.) Names that need more of the
 * kernel's headers than x86/ may include, and differences in the kernel's own functions, are
 * in virt/compat.h and dune/compat.h; macros that lead into the kernel are in linux/untrain.h.
 *
 * A feature of the kernel is seen by its macros: the version number does not tell what a
 * distribution has put into a kernel.
 */
#ifndef X86_COMPAT_H
#define X86_COMPAT_H

#include <asm/cpufeatures.h>

/* Since 6.16, and in updates of older kernels. Before, one flag means both. */
#ifndef X86_FEATURE_CLEAR_CPU_BUF_VM
#define X86_FEATURE_CLEAR_CPU_BUF_VM	X86_FEATURE_CLEAR_CPU_BUF
#endif

#ifndef __ASSEMBLER__

#include <asm/msr-index.h>

#include "x86/svm/vmcb.h"

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

#endif /* !__ASSEMBLER__ */

#endif /* X86_COMPAT_H */
