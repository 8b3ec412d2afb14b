// SPDX-License-Identifier: GPL-2.0-only
/*
 * Intel VT-x: what the machine must have, what all vCPUs share, a CPU's part
 * (VMXON, the active VMCSs, VPIDs). SDM is the Intel 64 and IA-32
 * Architectures Software Developer's Manual, volume 3.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <asm/cpufeature.h>
#include <asm/fpu/xcr.h>
#include <asm/msr.h>
#include <asm/processor.h>
#include <asm/tlbflush.h>

#include "compat.h"
#include "dune.h"
#include "guest.h"
#include "mirror.h"
#include "vendor.h"
#include "vmx.h"
#include "vmx_kvm.h"
#include "vmx_ops.h"

/*
 * VPIDs are handed out from the upper half, KVM's come from the lower. No
 * harm would come of a meeting: what EPT guests leave in the TLB is tagged
 * with the root of their EPT too (SDM 29.4.1). But each would flush the
 * other's.
 */
#define FIRST_VPID	0x8000
#define NR_VPIDS	0x10000

/**
 * struct vmx_cpu - a CPU's part; touched on that CPU, interrupts off
 * @vmxon:	the processor's own while virtualization is on
 * @active:	vCPUs whose VMCS is active here
 * @vpid_generation: a vCPU with an older one takes a new VPID
 * @next_vpid:	the next one of this generation
 */
struct vmx_cpu {
	struct page *vmxon;
	struct list_head active;
	u64 vpid_generation;
	u32 next_vpid;
};

static DEFINE_PER_CPU(struct vmx_cpu, vmx_cpu);

/* Of vmx_cpu.vmxon. */
DEFINE_PER_CPU(u64, vmx_vmxon_pa);

/*
 * A guest can make the processor read from its first-level cache by a page
 * table entry that is not present (L1 terminal fault): EPT does not help. The
 * cure is a flush before each entry. On a processor without the command only
 * its microcode can help.
 */
static bool l1d_flush = true;
module_param(l1d_flush, bool, 0444);
MODULE_PARM_DESC(l1d_flush, "flush the L1 data cache at each entry, on processors that are vulnerable without (default on)");
DEFINE_STATIC_KEY_FALSE(vmx_flushes_l1d);

u32 vmx_revision;
u64 vmx_msr_bitmap;
static void *msr_bitmap;
static u64 ept_vpid_cap;

static int probe_ept(void)
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
	int i;

	rdmsrq(MSR_IA32_VMX_EPT_VPID_CAP, ept_vpid_cap);
	for (i = 0; i < ARRAY_SIZE(needed); i++) {
		if (ept_vpid_cap & needed[i].bit)
			continue;
		pr_err("this CPU's VT-x has no %s\n", needed[i].name);
		return -ENODEV;
	}
	return 0;
}

static int vmx_probe(void)
{
	int err;

	/* The kernel hides the feature where the firmware locked it off. */
	if (!boot_cpu_has(X86_FEATURE_VMX)) {
		pr_err("VT-x is disabled by the firmware: enable it in the setup (Intel Virtualization Technology)\n");
		return -EOPNOTSUPP;
	}
	/* An NMI that ends a guest is passed on by INT 2, through the IDT. */
	if (kernel_uses_fred()) {
		pr_err("FRED is in use: boot with fred=off\n");
		return -EOPNOTSUPP;
	}
	err = vmx_controls_init();
	if (err)
		return err;
	return probe_ept();
}

/*
 * The bitmap: reads of the lower MSRs, of the upper ones, then writes of
 * each, 1 KB for each (SDM 25.6.9).
 */
static void msr_allow(u32 msr, bool write)
{
	u32 bit = msr & 0x1fff;

	if (msr >= 0xc0000000)
		bit += 1024 * 8;
	__clear_bit(bit, msr_bitmap);
	if (write)
		__clear_bit(bit + 2048 * 8, msr_bitmap);
}

/*
 * Registers that the guest has for itself. Those that the VMCS has no place
 * for are read at will, and written by an exit, so that we know them.
 */
static void msrs_allow(void)
{
	static const u32 in_vmcs[] = {
		MSR_FS_BASE, MSR_GS_BASE, MSR_KERNEL_GS_BASE,
		MSR_IA32_SYSENTER_CS, MSR_IA32_SYSENTER_ESP,
		MSR_IA32_SYSENTER_EIP,
	};
	static const u32 outside[] = {
		MSR_STAR, MSR_LSTAR, MSR_CSTAR, MSR_SYSCALL_MASK,
	};
	int i;

	memset(msr_bitmap, 0xff, PAGE_SIZE);
	for (i = 0; i < ARRAY_SIZE(in_vmcs); i++)
		msr_allow(in_vmcs[i], true);
	for (i = 0; i < ARRAY_SIZE(outside); i++)
		msr_allow(outside[i], false);
}

static void free_cpus(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct vmx_cpu *vc = &per_cpu(vmx_cpu, cpu);

		if (vc->vmxon)
			__free_page(vc->vmxon);
		vc->vmxon = NULL;
	}
}

static int alloc_cpus(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct vmx_cpu *vc = &per_cpu(vmx_cpu, cpu);

		INIT_LIST_HEAD(&vc->active);
		/* Nobody has one, also where KVM is there first. */
		vc->vpid_generation = 1;
		vc->next_vpid = NR_VPIDS;
		vc->vmxon = alloc_page(GFP_KERNEL | __GFP_ZERO);
		if (!vc->vmxon)
			return -ENOMEM;
		*(u32 *)page_address(vc->vmxon) = vmx_revision;
		per_cpu(vmx_vmxon_pa, cpu) =
			__pa(page_address(vc->vmxon));
	}
	return 0;
}

static void vmx_exit(void)
{
	free_cpus();
	free_page((unsigned long)msr_bitmap);
}

static void decide_l1d_flush(void)
{
	if (!boot_cpu_has_bug(X86_BUG_L1TF) || cpu_mitigations_off() ||
	    !l1d_flush)
		return;
	if (boot_cpu_has(X86_FEATURE_FLUSH_L1D))
		static_branch_enable(&vmx_flushes_l1d);
	else
		pr_notice("this CPU is vulnerable to L1TF and its microcode has no flush: run no program that you do not trust\n");
}

/*
 * cr4_update_irqsoff(), which newer kernels export to KVM alone: the kernel
 * keeps a copy of CR4, and would write it back without VMXE.
 */
DEFINE_STATIC_CALL_NULL(cr4_update, cr4_update_irqsoff);

/* Exported likewise: whether the process may go on, unchecked for a while. */
DEFINE_STATIC_CALL_RET0(vmx_split_lock, handle_guest_split_lock);

static int vmx_init(void)
{
	u64 basic;

	if (!dune_bind(cr4_update, "cr4_update_irqsoff")) {
		pr_err("the kernel's way to change CR4 is not to be found: VT-x cannot be turned on (CONFIG_KPROBES?)\n");
		return -EOPNOTSUPP;
	}
	if (boot_cpu_has(X86_FEATURE_SPLIT_LOCK_DETECT))
		dune_bind(vmx_split_lock, "handle_guest_split_lock");
	rdmsrq(MSR_IA32_VMX_BASIC, basic);
	vmx_revision = basic & 0x7fffffff;
	decide_l1d_flush();
	mirror_init(ept_vpid_cap & VMX_EPT_AD_BIT,
		    ept_vpid_cap & VMX_EPT_1GB_PAGE_BIT,
		    guest_address_bits());
	msr_bitmap = (void *)__get_free_page(GFP_KERNEL);
	if (!msr_bitmap || alloc_cpus()) {
		vmx_exit();
		return -ENOMEM;
	}
	msrs_allow();
	vmx_msr_bitmap = __pa(msr_bitmap);
	return 0;
}

static void vmx_info(struct dune_info *info)
{
	info->vendor = DUNE_VENDOR_VMX;
	info->address_bits = min(guest_address_bits(), 47U);
	info->granules = mirror_granules();
	info->guest_cr0 = DUNE_GUEST_CR0;
	info->guest_cr4 = guest_cr4(false);
	info->guest_efer = EFER_SCE | EFER_LME | EFER_LMA | EFER_NX;
	if (info->guest_cr4 & X86_CR4_PCIDE)
		info->features |= DUNE_FEATURE_PCID;
	if (boot_cpu_has(X86_FEATURE_OSXSAVE))
		info->xcr0 = xgetbv(XCR_XFEATURE_ENABLED_MASK);
}

static int vmx_cpu_enable(void)
{
	struct vmx_cpu *vc = this_cpu_ptr(&vmx_cpu);

	if (__read_cr4() & X86_CR4_VMXE)
		return -EBUSY;
	static_call_cond(cr4_update)(X86_CR4_VMXE, 0);
	if (!vmxon(this_cpu_ptr(&vmx_vmxon_pa))) {
		static_call_cond(cr4_update)(0, X86_CR4_VMXE);
		return -EIO;
	}
	/* The first VPID taken then starts a generation and flushes all. */
	vc->vpid_generation++;
	vc->next_vpid = NR_VPIDS;
	return 0;
}

static void vmx_cpu_disable(void)
{
	struct vmx_cpu *vc = this_cpu_ptr(&vmx_cpu);
	struct vcpu_hw *hw, *next;

	/*
	 * What is active is lost when virtualization goes off (SDM 25.11.1).
	 * If a run is under way, its guest's system-call MSRs are in the CPU;
	 * KVM, which may be the reason, will take what is there for the host's.
	 */
	list_for_each_entry_safe(hw, next, &vc->active, active) {
		if (hw->msrs_loaded)
			vmx_restore_msrs(hw);
		vmptrld(&hw->vmcs_pa);
		vmx_read_regs(hw);
		vmx_deactivate(hw);
	}
	vmxoff();
	static_call_cond(cr4_update)(0, X86_CR4_VMXE);
}

/* Interrupts off, on the CPU: the vCPU's VMCS becomes active and current. */
void vmx_activate(struct vcpu_hw *hw)
{
	if (hw->cpu < 0) {
		/* It is clear, but for a new page, whose state is undefined. */
		if (hw->pending & VMX_PENDING_SETUP)
			vmclear(&hw->vmcs_pa);
		hw->launched = false;
		hw->cpu = smp_processor_id();
		list_add(&hw->active, this_cpu_ptr(&vmx_cpu.active));
	}
	vmptrld(&hw->vmcs_pa);
	hw->pending &= ~VMX_PENDING_ACTIVATE;
}

/* Interrupts off, on the CPU where it is active, if on any. */
void vmx_deactivate(struct vcpu_hw *hw)
{
	if (hw->cpu < 0)
		return;
	vmclear(&hw->vmcs_pa);
	list_del(&hw->active);
	hw->cpu = -1;
}

/*
 * Interrupts off. A fresh VPID has no entries in the TLB. When a CPU has used
 * up all of them it starts a new generation and flushes every tag once.
 * Returns whether the vCPU has another VPID now.
 */
bool vmx_take_vpid(struct vcpu_hw *hw)
{
	struct vmx_cpu *vc = this_cpu_ptr(&vmx_cpu);

	if (hw->vpid_generation == vc->vpid_generation)
		return false;
	if (vc->next_vpid >= NR_VPIDS) {
		vc->vpid_generation++;
		vc->next_vpid = FIRST_VPID;
		invept(VMX_EPT_EXTENT_GLOBAL, 0);
	}
	hw->vpid = vc->next_vpid++;
	hw->vpid_generation = vc->vpid_generation;
	return true;
}

/*
 * All that the TLB of this CPU knows by way of the vCPU's EPT, whatever the
 * VPID and PCID: also after a change to the guest's own page table.
 */
void vmx_flush(const struct vcpu_hw *hw)
{
	invept(VMX_EPT_EXTENT_CONTEXT, hw->eptp);
}

const struct vendor vmx_vendor = {
	.mirrors = true,
	.puts_always = true,
	.shares = true,
	.probe = vmx_probe,
	.init = vmx_init,
	.exit = vmx_exit,
	.info = vmx_info,
	.cpu_enable = vmx_cpu_enable,
	.cpu_disable = vmx_cpu_disable,
	.cpu_emergency = vmx_turn_off,
	.create = vmx_create,
	.destroy = vmx_destroy,
	.set_root = vmx_set_root,
	.get_state = vmx_get_state,
	.set_state = vmx_set_state,
	.filter = vmx_filter,
	.load = vmx_load,
	.store = vmx_store,
	.leave_cpu = vmx_leave_cpu,
	.moved = vmx_moved,
	.put = vmx_put,
	.enter = vmx_enter,
	.handle_exit = vmx_handle_exit,
};
