// SPDX-License-Identifier: GPL-2.0-only
/*
 * The SVM part of a vCPU, its VMCB: what a guest needs of the processor, and how a
 * vCPU is made. svm.h lists the other files.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/gfp.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <asm/cpufeature.h>
#include <asm/mem_encrypt.h>

#include "dune/svm/svm.h"
#include "dune/vcpu_ops.h"
#include "virt/svm.h"

/* Returns 0, or -ENODEV after a line in the log about what this processor lacks. */
static int svm_check(void)
{
	if (!boot_cpu_has(X86_FEATURE_NPT)) {
		pr_err("this CPU has no nested paging (NPT)\n");
		return -ENODEV;
	}
	/*
	 * A guest that changes the size of a page without a flush would cause a
	 * machine check that stops the machine. KVM sets DC_CFG to prevent it, and
	 * distinguishes such a machine check from others; these processors are of 2007.
	 */
	if (boot_cpu_has_bug(X86_BUG_AMD_TLB_MMATCH)) {
		pr_err("this CPU has erratum 383 (AMD family 10h): a guest could stop the machine\n");
		return -ENODEV;
	}
	return 0;
}

static int svm_init(void)
{
	int err = svm_check();

	if (err)
		return err;
	err = svm_host_init();
	if (err)
		return err;
	err = svm_intercepts_init();
	if (err)
		return err;
	return svm_kvm_init();
}

static void svm_cleanup(void)
{
	svm_kvm_cleanup();
	svm_intercepts_cleanup();
	svm_host_cleanup();
}

static int svm_create(struct dune_vcpu *vcpu)
{
	struct vcpu_hw *hw = kzalloc(sizeof(*hw), GFP_KERNEL_ACCOUNT);
	struct vmcb_control_area *control;

	if (!hw)
		return -ENOMEM;
	hw->vmcb = svm_virt_alloc_page(GFP_KERNEL_ACCOUNT);
	if (!hw->vmcb) {
		kfree(hw);
		return -ENOMEM;
	}
	hw->vmcb_pa = __sme_pa(hw->vmcb);
	vcpu->hw = hw;

	control = &hw->vmcb->control;
	svm_set_intercepts(control);
	control->misc_ctl = SVM_MISC_ENABLE_NP;

	hw->cr4 = guest_cr4(vcpu->smap);
	svm_reset_state(hw->vmcb, hw->cr4);
	return 0;
}

static void svm_destroy(struct dune_vcpu *vcpu)
{
	free_page((unsigned long)vcpu->hw->vmcb);
	kfree(vcpu->hw);
}

static void svm_set_root(struct dune_vcpu *vcpu, u64 root)
{
	vcpu->hw->vmcb->control.nested_cr3 = root;
}

const struct vcpu_ops svm_vcpu_ops = {
	.vendor = DUNE_VENDOR_SVM,
	.efer = SVM_GUEST_EFER,
	.init = svm_init,
	.cleanup = svm_cleanup,
	.create = svm_create,
	.destroy = svm_destroy,
	.set_root = svm_set_root,
	.get_state = svm_get_state,
	.set_state = svm_set_state,
	.forbid = svm_forbid,
	.load_regs = svm_load_regs,
	.store_regs = svm_store_regs,
	.load = svm_vcpu_load,
	.put = svm_vcpu_put,
	.enter = svm_enter,
	.handle_exit = svm_handle_exit,
	.raise_fault = svm_raise_fault,
};
