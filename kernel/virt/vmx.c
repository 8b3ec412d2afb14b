// SPDX-License-Identifier: GPL-2.0-only
/*
 * Intel VT-x on the CPUs: checks that the firmware allows it, turns it on and off, and
 * allocates what each CPU needs for it. SDM is the Intel 64 and IA-32 Architectures
 * Software Developer's Manual, vol. 3. Guests are in dune/vmx/.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <asm/cpufeature.h>
#include <asm/msr.h>
#include <asm/tlbflush.h>

#include "virt/compat.h"
#include "virt/internal.h"
#include "virt/symbol.h"
#include "virt/tag.h"
#include "virt/vmx.h"

/*
 * VPIDs are handed out from the upper half; KVM's come from the lower. It would do no
 * harm if both used the same one: what EPT guests leave in the TLB is tagged with the
 * root of their EPT, too (SDM 29.4.1). But each would flush the other's entries.
 */
#define FIRST_VPID	0x8000
#define END_OF_VPIDS	0x10000

u32 vmx_virt_revision __ro_after_init;

/* The CPU's VMXON region, one page: the processor's own while virtualization is on. */
DEFINE_PER_CPU(u64, vmx_virt_vmxon_pa);

/*
 * cr4_update_irqsoff(), which newer kernels export to KVM alone: the kernel
 * keeps a copy of CR4, and would write it back without VMXE.
 */
DEFINE_STATIC_CALL_NULL(vmx_virt_cr4_update, cr4_update_irqsoff);

static int vmx_virt_probe(void)
{
	/* The kernel hides the feature if the firmware locked it off. */
	if (!boot_cpu_has(X86_FEATURE_VMX)) {
		pr_err("VT-x is disabled by the firmware: enable it in the setup (Intel Virtualization Technology)\n");
		return -EOPNOTSUPP;
	}
	return 0;
}

static int vmx_virt_init(void)
{
	u64 basic;
	int cpu;

	if (!symbol_bind(vmx_virt_cr4_update, "cr4_update_irqsoff")) {
		pr_err("the kernel's function that changes CR4 is not found: VT-x cannot be turned on; boot a kernel with CONFIG_KPROBES\n");
		return -EOPNOTSUPP;
	}
	rdmsrq(MSR_IA32_VMX_BASIC, basic);
	vmx_virt_revision = basic & GENMASK(30, 0);	/* SDM appendix A.1 */
	tags_init(FIRST_VPID, END_OF_VPIDS);
	for_each_possible_cpu(cpu) {
		u32 *region = (u32 *)get_zeroed_page(GFP_KERNEL);

		if (!region)
			return -ENOMEM;
		*region = vmx_virt_revision;
		per_cpu(vmx_virt_vmxon_pa, cpu) = __pa(region);
	}
	return 0;
}

static void vmx_virt_cleanup(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		if (per_cpu(vmx_virt_vmxon_pa, cpu))
			free_page((unsigned long)__va(per_cpu(vmx_virt_vmxon_pa, cpu)));
		per_cpu(vmx_virt_vmxon_pa, cpu) = 0;
	}
}

static int vmx_virt_cpu_turn_on(void)
{
	if (__read_cr4() & X86_CR4_VMXE)
		return -EBUSY;
	static_call_cond(vmx_virt_cr4_update)(X86_CR4_VMXE, 0);
	if (!vmxon(this_cpu_ptr(&vmx_virt_vmxon_pa))) {
		static_call_cond(vmx_virt_cr4_update)(0, X86_CR4_VMXE);
		return -EIO;
	}
	return 0;
}

static void vmx_virt_cpu_turn_off(void)
{
	vmxoff();
	static_call_cond(vmx_virt_cr4_update)(0, X86_CR4_VMXE);
}

const struct virt_ops vmx_virt_ops = {
	.vendor = VIRT_VMX,
	.probe = vmx_virt_probe,
	.init = vmx_virt_init,
	.cleanup = vmx_virt_cleanup,
	.cpu_turn_on = vmx_virt_cpu_turn_on,
	.cpu_turn_off = vmx_virt_cpu_turn_off,
	.cpu_emergency = vmx_virt_turn_off,
};
