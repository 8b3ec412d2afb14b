// SPDX-License-Identifier: GPL-2.0-only
/*
 * The VT-x part of a vCPU: what a guest needs of the processor, and how a vCPU is made.
 * vmx.h lists the other files.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/gfp.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <asm/cpufeature.h>
#include <asm/msr.h>

#include "dune/compat.h"
#include "dune/memory/second_level.h"
#include "dune/vcpu_ops.h"
#include "dune/vmx/vmx.h"
#include "virt/vmx.h"

/*
 * Makes the second level a mirror in EPT's format. Returns 0, or -ENODEV after a line in the log
 * about what this processor lacks.
 */
static int vmx_init_ept(void)
{
	static const struct {
		u64 bit;
		const char *name;
	} needed[] = {
		{ VMX_EPT_PAGE_WALK_4_BIT, "a 4-level EPT" },
		{ VMX_EPTP_WB_BIT, "write-back EPT" },
		{ VMX_EPT_2MB_PAGE_BIT, "2 MB pages in EPT" },
		{ VMX_EPT_INVEPT_BIT, "INVEPT" },
		{ VMX_EPT_EXTENT_CONTEXT_BIT, "INVEPT of one context" },
		{ VMX_EPT_EXTENT_GLOBAL_BIT, "INVEPT of all contexts" },
	};
	u64 cap;
	int i;

	rdmsrq(MSR_IA32_VMX_EPT_VPID_CAP, cap);
	for (i = 0; i < ARRAY_SIZE(needed); i++) {
		if (cap & needed[i].bit)
			continue;
		pr_err("this CPU's VT-x has no %s\n", needed[i].name);
		return -ENODEV;
	}
	second_level_use_mirror(cap & VMX_EPT_AD_BIT,
				cap & VMX_EPT_1GB_PAGE_BIT,
				guest_address_bits());
	return 0;
}

static int vmx_init(void)
{
	int err;

	/* An NMI that ends a guest is passed on by INT 2, through the IDT. */
	if (kernel_uses_fred()) {
		pr_err("FRED is in use: boot with fred=off\n");
		return -EOPNOTSUPP;
	}
	err = vmx_intercepts_init();
	if (err)
		return err;
	err = vmx_init_ept();
	if (err)
		return err;
	vmx_vmcs_init();
	vmx_enter_init();
	return 0;
}

static int vmx_create(struct dune_vcpu *vcpu)
{
	struct vcpu_hw *hw = kzalloc(sizeof(*hw), GFP_KERNEL_ACCOUNT);

	if (!hw)
		return -ENOMEM;
	hw->vmcs = (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
	if (!hw->vmcs) {
		kfree(hw);
		return -ENOMEM;
	}
	*(u32 *)hw->vmcs = vmx_virt_revision;
	hw->vmcs_pa = __pa(hw->vmcs);
	hw->cpu = -1;
	hw->controls = vmx_controls[VMX_CPU];
	hw->cr4 = guest_cr4(vcpu->smap);
	hw->rflags = X86_EFLAGS_FIXED;
	hw->pending = VMX_PENDING_SETUP | VMX_PENDING_CONTROLS | VMX_PENDING_REGS;
	vmx_reset_state(hw);
	vcpu->hw = hw;
	return 0;
}

static void vmx_leave_cpu(struct dune_vcpu *vcpu)
{
	vmx_deactivate(vcpu->hw);
}

static void vmx_destroy(struct dune_vcpu *vcpu)
{
	vmx_deactivate(vcpu->hw);
	free_page((unsigned long)vcpu->hw->vmcs);
	kfree(vcpu->hw);
}

static void vmx_set_root(struct dune_vcpu *vcpu, u64 root)
{
	vcpu->hw->eptp = root;
}

const struct vcpu_ops vmx_vcpu_ops = {
	.vendor = DUNE_VENDOR_VMX,
	.efer = DUNE_GUEST_EFER,
	.needs_put = true,
	.init = vmx_init,
	.cleanup = vmx_intercepts_cleanup,
	.cpu_off = vmx_host_cpu_off,
	.create = vmx_create,
	.destroy = vmx_destroy,
	.set_root = vmx_set_root,
	.get_state = vmx_get_state,
	.set_state = vmx_set_state,
	.forbid = vmx_forbid,
	.load_regs = vmx_load_regs,
	.store_regs = vmx_store_regs,
	.leave_cpu = vmx_leave_cpu,
	.load = vmx_vcpu_load,
	.put = vmx_vcpu_put,
	.enter = vmx_enter,
	.handle_exit = vmx_handle_exit,
	.raise_fault = vmx_raise_fault,
};
