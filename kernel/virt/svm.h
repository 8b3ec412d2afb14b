/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * AMD SVM on the CPUs: svm.c. The functions that turn it on and off here are inline for an
 * entry while KVM is loaded (dune/svm/enter.c, kvm.c): each instruction counts there.
 */
#ifndef VIRT_SVM_H
#define VIRT_SVM_H

#include <linux/log2.h>
#include <linux/types.h>
#include <asm/msr-index.h>

#include "virt/compat.h"
#include "x86/msr.h"

/*
 * Returns a zeroed page for VMRUN, VMLOAD and VMSAVE, for free_page(), or NULL without memory. For
 * process context; may sleep.
 */
void *svm_virt_alloc_page(gfp_t gfp);

/*
 * svm_virt_alloc_cpu_pages() allocates such a page for each possible CPU, and returns 0 or
 * -ENOMEM. svm_virt_free_cpu_pages() frees them, also after svm_virt_alloc_cpu_pages() has failed.
 * @pages: the per-CPU variable that gets the pages' addresses. Both are for process context; the
 * first may sleep.
 */
int svm_virt_alloc_cpu_pages(void *__percpu *pages);
void svm_virt_free_cpu_pages(void *__percpu *pages);

/* Returns the physical address of this CPU's host save area. Interrupts are off. */
u64 svm_virt_hsave(void);

/* Only for svm_virt_reduce_speculation(), which calls this if the kernel uses the mitigation. */
void svm_virt_set_reduced_speculation(void);

/*
 * Keeps the guest's predictions from the host. Called before a guest runs on this CPU, with
 * interrupts off.
 */
static __always_inline void svm_virt_reduce_speculation(void)
{
	if (kernel_reduces_speculation())
		svm_virt_set_reduced_speculation();
}

/*
 * Turns SVM on, if it is off. Interrupts are off. @hsave: svm_virt_hsave(), in halves. Returns
 * whether it was on already: otherwise svm_virt_turn_off() must follow.
 */
static __always_inline bool svm_virt_test_and_turn_on(const u32 hsave[2])
{
	u32 low, high;
	bool on;

	asm volatile("rdmsr\n\tbts %[bit], %%eax"
		     : "=@ccc" (on), "=a" (low), "=d" (high)
		     : "c" (MSR_EFER), [bit] "i" (ilog2(EFER_SVME)));
	if (likely(on))
		return true;
	msr_write_halves(MSR_EFER, low, high);
	msr_write_halves(MSR_VM_HSAVE_PA, hsave[0], hsave[1]);
	return false;
}

/* Turns SVM off after svm_virt_test_and_turn_on() has turned it on. Interrupts are off. */
static __always_inline void svm_virt_turn_off(void)
{
	asm volatile("mov %[msr], %%ecx\n\t"
		     "rdmsr\n\tbtr %[bit], %%eax\n\twrmsr"
		     : : [msr] "i" (MSR_EFER), [bit] "i" (ilog2(EFER_SVME))
		     : "eax", "ecx", "edx", "cc", "memory");
}

/*
 * Turns SVM on for a VMSAVE after a context switch, while KVM is loaded. svm_virt_give_back()
 * must follow, and then an entry; interrupts are off all this time. @hsave: svm_virt_hsave().
 * Returns EFER as it was, for svm_virt_give_back(). The counterpart on VT-x is
 * vmx_borrow(), which is in dune/vmx/kvm.h because it also makes the vCPU's VMCS current.
 *
 * A KVM thread that turns virtualization on or off, in two steps, may have been switched away
 * from between them: then VM_HSAVE_PA may be 0 while EFER.SVME is set, and the entry's VMRUN
 * needs it. It is written here, and KVM writes it when its thread continues.
 */
static inline u64 svm_virt_borrow(u64 hsave)
{
	u64 efer = msr_read(MSR_EFER);

	if (!(efer & EFER_SVME))
		msr_write(MSR_EFER, efer | EFER_SVME);
	else if (!msr_read(MSR_VM_HSAVE_PA))
		msr_write(MSR_VM_HSAVE_PA, hsave);
	return efer;
}

/*
 * The opposite of svm_virt_borrow(), except for VM_HSAVE_PA. @efer: what svm_virt_borrow()
 * returned.
 */
static inline void svm_virt_give_back(u64 efer)
{
	if (!(efer & EFER_SVME))
		msr_write(MSR_EFER, efer);
}

#endif /* VIRT_SVM_H */
