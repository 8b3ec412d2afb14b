/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's names of SVM: the VMCB, exit codes, the AVIC's tables. <asm/svm.h> uses names of
 * two other headers, which it includes in some kernels only.
 */
#ifndef X86_SVM_VMCB_H
#define X86_SVM_VMCB_H

#include <linux/bitops.h>
#include <asm/page_types.h>
#include <asm/svm.h>

#endif /* X86_SVM_VMCB_H */
