/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one place that knows that kernels differ: it gives older kernels the
 * names of the newer ones. Everything else is written for the newest.
 *
 * What a kernel has is seen by its macros, or by what Kbuild found in its
 * headers (HAVE_*); its version number says nothing about what a distribution
 * has put into it.
 */
#ifndef DUNE_COMPAT_H
#define DUNE_COMPAT_H

#ifdef __ASSEMBLER__

#include <asm/nospec-branch.h>

/*
 * Since 6.2; before, one macro serves every kind of entry, and KVM adds the
 * barrier that an exit alone needs (spec_rstack_overflow=ibpb-vmexit).
 */
#ifndef UNTRAIN_RET_VM
.macro UNTRAIN_RET_VM
	UNTRAIN_RET
#ifdef X86_FEATURE_IBPB_ON_VMEXIT
	ALTERNATIVE "", "call entry_ibpb", X86_FEATURE_IBPB_ON_VMEXIT
#endif
.endm
#endif

/* Since 6.16, and in older ones' updates; before, one flag means both. */
#ifndef X86_FEATURE_CLEAR_CPU_BUF_VM
#define X86_FEATURE_CLEAR_CPU_BUF_VM	X86_FEATURE_CLEAR_CPU_BUF
#endif

/*
 * FORGET_BRANCH_HISTORY: on processors whose predictions depend on what was
 * executed before. Since 6.9, and in older ones' updates: a macro of assembly,
 * seen by the name of the feature.
 */
#if defined(X86_FEATURE_CLEAR_BHB_VMEXIT) || \
	defined(X86_FEATURE_CLEAR_BHB_LOOP_ON_VMEXIT)
#define FORGET_BRANCH_HISTORY	CLEAR_BRANCH_HISTORY_VMEXIT
#else
#define FORGET_BRANCH_HISTORY
#endif

#else /* !__ASSEMBLER__ */

#include <linux/bitops.h>
#include <linux/entry-common.h>
#include <linux/mm.h>
#include <linux/syscore_ops.h>
#include <asm/msr.h>
#include <asm/page.h>
#include <asm/svm.h>
#include <asm/cpufeature.h>
#include <asm/nospec-branch.h>
#include <asm/paravirt.h>
#include <asm/thread_info.h>

/* Since 6.3 the flags of a VMA are changed by functions that check locks. */
#ifndef HAVE_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}
#endif

/* Since 6.6; a write fault must not be resolved for a shadow stack. */
#ifndef VM_SHADOW_STACK
#define VM_SHADOW_STACK	VM_NONE
#endif

/* Since 6.6 the lock bit of VM_CR has a common name for both vendors' uses. */
#ifndef SVM_VM_CR_SVM_DISABLE
#define SVM_VM_CR_SVM_DISABLE	4
#endif

/* Since 6.13 there is a reschedule that may wait for the next tick. */
#ifndef _TIF_NEED_RESCHED_LAZY
#define _TIF_NEED_RESCHED_LAZY	0
#endif

/* Since 7.0 restartable sequences have a flag of their own. */
#ifndef _TIF_RSEQ
#define _TIF_RSEQ	0
#endif

/* Since 6.16 CPUID has headers of its own. */
#if __has_include("asm/cpuid/api.h")
#include <asm/cpuid/api.h>
#endif

/* Since 6.16 the size is in the name as in the instruction's operand. */
#ifndef rdmsrq
#define rdmsrq		rdmsrl
#define wrmsrq		wrmsrl
#define rdmsrq_safe	rdmsrl_safe
#define wrmsrq_safe	wrmsrl_safe
#endif

/* Since 6.18 the callbacks get a pointer. */
#ifndef HAVE_REGISTER_SYSCORE
struct syscore {
	struct syscore_ops *ops;
};

#define SYSCORE_ARGUMENT	void

#define register_syscore(syscore)	register_syscore_ops((syscore)->ops)
#define unregister_syscore(syscore)	unregister_syscore_ops((syscore)->ops)
#else
#define SYSCORE_ARGUMENT	void *unused
#endif

/* Since 6.6, and in older ones' updates; since 7.0 the kernel looks itself. */
#ifndef HAVE_EMERGENCY_CALLBACK
#define cpu_emergency_register_virt_callback(callback)		((void)(callback))
#define cpu_emergency_unregister_virt_callback(callback)	((void)(callback))
#endif

/* Renamed in 5.15 and 6.9; here as in the newest. */
#ifdef CONFIG_PAGE_TABLE_ISOLATION
#define CONFIG_MITIGATION_PAGE_TABLE_ISOLATION	1
#endif

/* The page table of user mode, where the kernel's is another one. */
static inline pgd_t *user_page_table(pgd_t *pgd)
{
#ifdef CONFIG_MITIGATION_PAGE_TABLE_ISOLATION
	if (boot_cpu_has(X86_FEATURE_PTI))
		return kernel_to_user_pgdp(pgd);
#endif
	return pgd;
}

/* Since 6.9: interrupts and exceptions without an IDT. */
static inline bool kernel_uses_fred(void)
{
#ifdef X86_FEATURE_FRED
	return boot_cpu_has(X86_FEATURE_FRED);
#else
	return false;
#endif
}

/*
 * Since 6.13, and in older ones' updates: a bit of an MSR keeps a guest's
 * predictions from the kernel, on processors that need it for guests alone
 * (Zen 5). KVM sets it, and nobody else.
 */
#ifndef MSR_ZEN4_BP_CFG_BP_SPEC_REDUCE_BIT
#define MSR_ZEN4_BP_CFG_BP_SPEC_REDUCE_BIT	4
#endif

static __always_inline bool kernel_reduces_speculation(void)
{
#ifdef X86_FEATURE_SRSO_BP_SPEC_REDUCE
	return cpu_feature_enabled(X86_FEATURE_SRSO_BP_SPEC_REDUCE);
#else
	return false;
#endif
}

/*
 * Since 6.17, and in older ones' updates (VMSCAPE): the CPU forgets all
 * predictions before it runs user mode again. Interrupts off, on the CPU.
 */
static __always_inline void forget_predictions_before_user_mode(void)
{
#ifdef X86_FEATURE_IBPB_EXIT_TO_USER
	if (cpu_feature_enabled(X86_FEATURE_IBPB_EXIT_TO_USER))
		this_cpu_write(x86_ibpb_exit_to_user, true);
#endif
}

/* Since 6.15: TLB shootdown by INVLPGB, without interrupts. */
static inline bool kernel_flushes_by_broadcast(void)
{
#ifdef CONFIG_BROADCAST_TLB_FLUSH
	return boot_cpu_has(X86_FEATURE_INVLPGB);
#else
	return false;
#endif
}

/*
 * Below some hypervisors TLB shootdown is a hypercall, or waits until the
 * hypervisor runs the other processor again, without interrupts either.
 * @native is the kernel's own way, by interrupts.
 */
static inline bool kernel_flushes_by_hypervisor(unsigned long native)
{
#ifdef CONFIG_PARAVIRT
	return (unsigned long)pv_ops.mmu.flush_tlb_multi != native;
#else
	return false;
#endif
}

/* Since 6.6; before, it was called for page tables that are shared only. */
#ifndef HAVE_ARCH_INVALIDATE
#define arch_invalidate_secondary_tlbs	invalidate_range
#endif

/* Since 7.0 this word of the VMCB has a name for all of its bits. */
#ifndef SVM_MISC_ENABLE_NP
#define SVM_MISC_ENABLE_NP	SVM_NESTED_CTL_NP_ENABLE
#define misc_ctl		nested_ctl
#endif

#endif /* __ASSEMBLER__ */

#endif /* DUNE_COMPAT_H */
