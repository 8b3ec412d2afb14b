// SPDX-License-Identifier: GPL-2.0-only
/*
 * The host's state around SVM, as far as VMRUN and #VMEXIT do not save and restore it by
 * themselves.
 */
#include <linux/lockdep.h>
#include <linux/percpu.h>
#include <asm/cpufeature.h>
#include <asm/fpu/xcr.h>
#include <asm/mem_encrypt.h>
#include <asm/msr.h>

#include "dune/svm/svm.h"
#include "virt/svm.h"
#include "virt/virt.h"

DEFINE_STATIC_KEY_FALSE(svm_check_xcr0);
u64 svm_host_xcr0 __ro_after_init;
DEFINE_STATIC_KEY_FALSE(svm_hides_xss);
u64 svm_host_xss __ro_after_init;

/* The page to which VMSAVE saves this CPU's state, in the format of a VMCB. */
static DEFINE_PER_CPU(void *, host_vmcb);

/*
 * Learns what an exit must restore, and allocates a page for each CPU. Called at load; may sleep.
 * Returns 0 or -ENOMEM; svm_host_cleanup() must follow in either case.
 */
int svm_host_init(void)
{
	if (boot_cpu_has(X86_FEATURE_OSXSAVE))
		svm_host_xcr0 = xgetbv(XCR_XFEATURE_ENABLED_MASK);
	if (svm_host_xcr0 && boot_cpu_has(X86_FEATURE_HYPERVISOR))
		static_branch_enable(&svm_check_xcr0);
	/* The value is the same on all CPUs, and constant (fpu__init_cpu_xstate()). */
	if (boot_cpu_has(X86_FEATURE_XSAVES))
		rdmsrq(MSR_IA32_XSS, svm_host_xss);
	if (svm_host_xss)
		static_branch_enable(&svm_hides_xss);
	return svm_virt_alloc_cpu_pages(&host_vmcb);
}

/* Frees what svm_host_init() allocated, also if svm_host_init() failed. */
void svm_host_cleanup(void)
{
	svm_virt_free_cpu_pages(&host_vmcb);
}

/*
 * Saves the registers that VMLOAD restores after each exit, and returns the physical address
 * of the page that has them. Interrupts are off. All of them stay valid until the next
 * context switch, except for LDTR: when another thread calls modify_ldt(), an interrupt
 * reloads LDTR here, and the old table is freed. So the saved LDTR is made null, and
 * enter() reloads LDTR from the GDT, which always has the current table.
 */
static u64 save(void)
{
	struct vmcb *host = this_cpu_read(host_vmcb);
	u64 pa = __sme_pa(host);

	lockdep_assert_irqs_disabled();
	vmsave(pa);
	memset(&host->save.ldtr, 0, sizeof(host->save.ldtr));
	return pa;
}

/*
 * Saves the host's state while KVM is loaded: VMSAVE needs EFER.SVME. @hw gets this CPU's host save
 * area, which an entry needs if it has to turn SVM on. Returns as save().
 */
static u64 save_with_kvm(struct vcpu_hw *hw)
{
	u64 hsave, efer, pa;

	lockdep_assert_irqs_disabled();
	hsave = svm_virt_hsave();
	efer = svm_virt_borrow(hsave);
	hw->hsave[0] = lower_32_bits(hsave);
	hw->hsave[1] = upper_32_bits(hsave);
	pa = save();
	svm_virt_give_back(efer);
	return pa;
}

/* Implements @load of struct vcpu_ops. */
void svm_vcpu_load(struct dune_vcpu *vcpu, bool migrated)
{
	struct vcpu_hw *hw = vcpu->hw;

	lockdep_assert_irqs_disabled();
	svm_virt_reduce_speculation();
	if (static_branch_unlikely(&virt_kvm_loaded)) {
		hw->host_pa = save_with_kvm(hw);
		svm_kvm_load(hw);
		return;
	}
	hw->host_pa = save();
	svm_tag_load(hw, migrated);
}

/* Implements @put of struct vcpu_ops, which is called only while KVM is loaded. */
void svm_vcpu_put(struct dune_vcpu *vcpu)
{
	svm_kvm_put();
}
