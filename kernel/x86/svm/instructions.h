/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SVM's instructions, and those of its names that the kernel's headers lack. APM is
 * the AMD64 Architecture Programmer's Manual. Section numbers are those of vol. 2 unless
 * another volume is named; they have been stable.
 */
#ifndef X86_SVM_INSTRUCTIONS_H
#define X86_SVM_INSTRUCTIONS_H

#include <linux/bits.h>
#include <linux/types.h>

#include "x86/compat.h"
#include "x86/svm/vmcb.h"

/* CPUID leaves: SVM's, EBX is the number of ASIDs; encrypted guests', ECX that of theirs. */
#define CPUID_SVM		0x8000000a
#define CPUID_SEV		0x8000001f

/* VMCB clean bits (APM 15.15.3). */
#define SVM_CLEAN_INTERCEPTS	BIT(0)
#define SVM_CLEAN_MAPS		BIT(1)	/* where the permission maps of ports and MSRs are */
#define SVM_CLEAN_INTR		BIT(3)	/* int_ctl and the virtual interrupt */
#define SVM_CLEAN_DEBUG		BIT(6)	/* DR6 and DR7 */
#define SVM_CLEAN_CR2		BIT(9)
#define SVM_CLEAN_ALL		GENMASK(9, 0)

/* EXITINFO1 of a nested page fault: a page fault's error code, and more (APM 15.25.6). */
#define SVM_NPF_WRITE		BIT_ULL(1)
#define SVM_NPF_FETCH		BIT_ULL(4)
#define SVM_NPF_TABLE		BIT_ULL(33)	/* a walk of the guest's page table */

/* Exit codes, by the manual's names (APM appendix C). */
#define VMEXIT_INVLPGB		0xa0
#define VMEXIT_INVLPGB_ILLEGAL	0xa1
#define VMEXIT_MCOMMIT		0xa3
#define VMEXIT_TLBSYNC		0xa4

/* Lengths of instructions, for processors that do not report the next RIP. */
#define VMMCALL_LENGTH		3
#define STGI_LENGTH		3
#define INVD_LENGTH		2
#define MSR_LENGTH		2	/* of RDMSR and WRMSR */
#define HLT_LENGTH		1
#define ICEBP_LENGTH		1
#define MONITOR_LENGTH		3	/* also of MWAIT, MONITORX and MWAITX */

static __always_inline void stgi(void)
{
	asm volatile("stgi");
}

/* @pa: a physical address, of a page in the format of a VMCB. */
static __always_inline void vmsave(u64 pa)
{
	asm volatile("vmsave %0" : : "a" (pa) : "memory");
}

/*
 * Enters a guest that executes nothing, so that general registers need no care:
 * an NMI is held back from before the entry until after the exit.
 */
static __always_inline void vmrun_nothing(u64 vmcb_pa)
{
	asm volatile("clgi; vmrun %0; stgi" : : "a" (vmcb_pa) : "cc", "memory");
}

#endif /* X86_SVM_INSTRUCTIONS_H */
