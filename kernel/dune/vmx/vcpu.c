// SPDX-License-Identifier: GPL-2.0-only
/*
 * The VT-x part of a vCPU: what a guest needs of the processor, how a vCPU is made, and
 * the guest's state and registers between user mode and struct vcpu_hw. vmx.h says
 * where the rest is.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/printk.h>
#include <linux/slab.h>
#include <asm/cpufeature.h>
#include <asm/msr.h>

#include "dune/memory/second_level.h"
#include "dune/vcpu_ops.h"
#include "dune/vmx/kvm.h"
#include "dune/vmx/vmx.h"
#include "virt/compat.h"
#include "virt/vmx.h"

/* The second level is a mirror in EPT's format. */
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
	if (!err)
		err = vmx_init_ept();
	if (err)
		return err;
	vmx_vmcs_init();
	vmx_enter_init();
	return 0;
}

void vmx_reset_state(struct vcpu_hw *hw)
{
	local_irq_disable();
	/* This puts back only those that differ: now, while it is known which. */
	if (hw->msrs_loaded)
		vmx_restore_msrs(hw);
	local_irq_enable();
	memset(&hw->state, 0, sizeof(hw->state));
	hw->state.tr.attributes = BUSY_TSS;
	memset(hw->msrs, 0, sizeof(hw->msrs));
	hw->pending &= ~(VMX_PENDING_EVENT | VMX_PENDING_SKIP);
	hw->pending |= VMX_PENDING_STATE | VMX_PENDING_MSRS;
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
	*(u32 *)hw->vmcs = vmx_revision;
	hw->vmcs_pa = __pa(hw->vmcs);
	hw->cpu = -1;
	hw->controls = vmx_controls.cpu;
	hw->cr4 = guest_cr4(vcpu->smap);
	hw->rflags = X86_EFLAGS_FIXED;
	hw->pending = VMX_PENDING_SETUP | VMX_PENDING_CONTROLS |
		      VMX_PENDING_REGS;
	vmx_reset_state(hw);
	vcpu->hw = hw;
	return 0;
}

static void vmx_leave_cpu(struct dune_vcpu *vcpu)
{
	vmx_release(vcpu->hw);
}

static void vmx_destroy(struct dune_vcpu *vcpu)
{
	vmx_release(vcpu->hw);
	free_page((unsigned long)vcpu->hw->vmcs);
	kfree(vcpu->hw);
}

static void vmx_set_root(struct dune_vcpu *vcpu, u64 root)
{
	vcpu->hw->eptp = root;
}

static void get_outside_vmcs(const struct vcpu_hw *hw, struct dune_state *state)
{
	state->star = hw->msrs[VMX_MSR_STAR];
	state->lstar = hw->msrs[VMX_MSR_LSTAR];
	state->cstar = hw->msrs[VMX_MSR_CSTAR];
	state->sfmask = hw->msrs[VMX_MSR_SFMASK];
	state->kernel_gs_base = hw->kernel_gs_base;
	state->cr2 = hw->cr2;
}

static void vmx_get_state(struct dune_vcpu *vcpu, struct dune_state *state)
{
	struct vcpu_hw *hw = vcpu->hw;
	bool borrowed;

	if (!(hw->pending & VMX_PENDING_STATE)) {
		if (vmx_claim(hw, &borrowed)) {
			vmx_read_state(state);
			if (borrowed)
				vmx_give_back(hw);
		}
		local_irq_enable();
	} else {
		*state = hw->state;
	}
	get_outside_vmcs(hw, state);
}

/*
 * Nothing needs checking here. The processor refuses an illegal state at the entry
 * (DUNE_EXIT_INVALID). What could reach beyond the guest is not in struct dune_state.
 */
static void vmx_set_state(struct dune_vcpu *vcpu, const struct dune_state *state)
{
	struct vcpu_hw *hw = vcpu->hw;

	hw->state = *state;
	hw->msrs[VMX_MSR_STAR] = state->star;
	hw->msrs[VMX_MSR_LSTAR] = guest_canonical(state->lstar);
	hw->msrs[VMX_MSR_CSTAR] = guest_canonical(state->cstar);
	hw->msrs[VMX_MSR_SFMASK] = (u32)state->sfmask;
	hw->kernel_gs_base = guest_canonical(state->kernel_gs_base);
	hw->cr2 = state->cr2;
	hw->pending &= ~(VMX_PENDING_EVENT | VMX_PENDING_SKIP);
	hw->pending |= VMX_PENDING_STATE | VMX_PENDING_MSRS;
}

static void vmx_filter(struct dune_vcpu *vcpu, bool notsc, bool nocpuid)
{
	struct vcpu_hw *hw = vcpu->hw;

	hw->controls &= ~CPU_BASED_RDTSC_EXITING;
	if (notsc)
		hw->controls |= CPU_BASED_RDTSC_EXITING;
	hw->pending |= VMX_PENDING_CONTROLS;
}

static void vmx_load_regs(struct dune_vcpu *vcpu)
{
	const struct dune_regs *regs = &vcpu->run->regs;
	struct vcpu_hw *hw = vcpu->hw;
	u64 rflags = guest_rflags(READ_ONCE(regs->rflags));
	u64 rip = READ_ONCE(regs->rip);

	/* A shadow of STI or MOV SS belongs to the instruction at RIP. */
	hw->keeps_shadow = !(hw->pending & VMX_PENDING_REGS) &&
			   rip == hw->rip && rflags == hw->rflags;
	/* Before they change: vmx_cpu_off() reads them in an interrupt. */
	hw->pending |= VMX_PENDING_REGS;
	barrier();
	hw->rip = rip;
	hw->rsp = READ_ONCE(regs->rsp);
	hw->rflags = rflags;
	hw->irq = vcpu->irq;
	if (hw->irq || hw->controls & CPU_BASED_INTR_WINDOW_EXITING)
		hw->pending |= VMX_PENDING_IRQ;
}

static void vmx_store_regs(struct dune_vcpu *vcpu)
{
	const struct vcpu_hw *hw = vcpu->hw;
	struct dune_run *run = vcpu->run;

	run->regs.rip = hw->rip;
	run->regs.rsp = hw->rsp;
	run->regs.rflags = hw->rflags;
	if (!hw->irq)
		run->irq_vector = 0;
	run->hw_exit = hw->exit.reason & VMX_REASON_MASK;
	run->hw_info1 = hw->exit.qualification;
	run->hw_info2 = hw->exit.guest_physical;
}

const struct vcpu_ops vmx_vcpu_ops = {
	.vendor = DUNE_VENDOR_VMX,
	.efer = DUNE_GUEST_EFER,
	.needs_put = true,
	.init = vmx_init,
	.cleanup = vmx_intercepts_cleanup,
	.cpu_off = vmx_cpu_off,
	.create = vmx_create,
	.destroy = vmx_destroy,
	.set_root = vmx_set_root,
	.get_state = vmx_get_state,
	.set_state = vmx_set_state,
	.filter = vmx_filter,
	.load_regs = vmx_load_regs,
	.store_regs = vmx_store_regs,
	.leave_cpu = vmx_leave_cpu,
	.vcpu_load = vmx_vcpu_load,
	.vcpu_put = vmx_vcpu_put,
	.enter = vmx_enter,
	.handle_exit = vmx_handle_exit,
};
