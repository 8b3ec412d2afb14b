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

/* A zeroed page for VMRUN, VMLOAD and VMSAVE. */
void *svm_alloc_page(gfp_t gfp);

/*
 * svm_alloc_cpu_pages() allocates such a page for each possible CPU, and returns 0 or
 * -ENOMEM. svm_free_cpu_pages() frees them, also after svm_alloc_cpu_pages() has failed.
 * Both are for process context.
 */
int svm_alloc_cpu_pages(void *__percpu *pages);
void svm_free_cpu_pages(void *__percpu *pages);

/* Returns the physical address of this CPU's host save area. Interrupts are off. */
u64 svm_hsave(void);

/*
 * Do not call this directly: svm_reduce_speculation() does, if the kernel uses the
 * mitigation.
 */
void svm_set_reduced_speculation(void);

/*
 * Keeps the guest's predictions from the host. Called before a guest runs on this CPU, with
 * interrupts off.
 */
static __always_inline void svm_reduce_speculation(void)
{
	if (kernel_reduces_speculation())
		svm_set_reduced_speculation();
}

/*
 * Turns SVM on, if it is off. Interrupts are off. @hsave: svm_hsave(), in halves. Returns
 * whether it was on already: otherwise svm_turn_off() must follow.
 */
static __always_inline bool svm_test_and_turn_on(const u32 hsave[2])
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

/* Turns SVM off after svm_test_and_turn_on() has turned it on. Interrupts are off. */
static __always_inline void svm_turn_off(void)
{
	asm volatile("mov %[msr], %%ecx\n\t"
		     "rdmsr\n\tbtr %[bit], %%eax\n\twrmsr"
		     : : [msr] "i" (MSR_EFER), [bit] "i" (ilog2(EFER_SVME))
		     : "eax", "ecx", "edx", "cc", "memory");
}

/*
 * Turns SVM on for a VMSAVE after a context switch, while KVM is loaded. Interrupts are off
 * until svm_give_back() and until the entry that follows. @hsave: svm_hsave(). Returns EFER as
 * it was, for svm_give_back().
 *
 * A KVM thread that turns virtualization on or off, in two steps, may have been switched away
 * from between them: then VM_HSAVE_PA may be 0 while EFER.SVME is set, and the entry's VMRUN
 * needs it. It is written here, and KVM writes it when its thread continues.
 */
static inline u64 svm_borrow(u64 hsave)
{
	u64 efer = msr_read(MSR_EFER);

	if (!(efer & EFER_SVME))
		msr_write(MSR_EFER, efer | EFER_SVME);
	else if (!msr_read(MSR_VM_HSAVE_PA))
		msr_write(MSR_VM_HSAVE_PA, hsave);
	return efer;
}

/* The opposite of svm_borrow(), except for VM_HSAVE_PA. @efer: what svm_borrow() returned. */
static inline void svm_give_back(u64 efer)
{
	if (!(efer & EFER_SVME))
		msr_write(MSR_EFER, efer);
}

#endif /* VIRT_SVM_H */
