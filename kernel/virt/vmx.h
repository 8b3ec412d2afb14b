/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Intel VT-x on the CPUs: vmx.c. The functions here are inline for an entry while KVM
 * is loaded (dune/vmx/kvm.h): each instruction counts there.
 */
#ifndef VIRT_VMX_H
#define VIRT_VMX_H

#include <linux/percpu.h>
#include <linux/types.h>
#include <asm/asm.h>
#include <asm/processor-flags.h>
#include <asm/special_insns.h>

#include "x86/vmx/instructions.h"

/* The first word of each VMCS and of the VMXON region. */
extern u32 vmx_virt_revision;

/* The physical address of the CPU's VMXON region. */
DECLARE_PER_CPU(u64, vmx_virt_vmxon_pa);

/*
 * VMXON and VMPTRST may fault, so they need the kernel's table of exceptions. All functions here
 * are for interrupts off.
 */

/*
 * @region: holds the region's physical address. Returns false if VMXON is not allowed: in
 * SMX, or by processor trace.
 */
static __always_inline bool vmxon(const u64 *region)
{
	asm goto("1: vmxon %[region]\n\t"
		 "jna %l[failed]\n"
		 _ASM_EXTABLE(1b, %l[failed])
		 : : [region] "m" (*region)
		 : "cc", "memory" : failed);
	return true;
failed:
	return false;
}

/*
 * @vmcs: gets the current VMCS's physical address, or all ones if no VMCS is
 * current. Returns false outside of VMX operation.
 */
static __always_inline bool vmptrst(u64 *vmcs)
{
	asm goto("1: vmptrst %[vmcs]\n"
		 _ASM_EXTABLE(1b, %l[failed])
		 : : [vmcs] "m" (*vmcs) : "cc", "memory" : failed);
	return true;
failed:
	return false;
}

/* Writes CR4 without the kernel's function, which would also change the copy that KVM reads. */
static __always_inline void vmx_virt_set_cr4(u64 cr4)
{
	asm volatile("mov %0, %%cr4" : : "r" (cr4) : "memory");
}

/*
 * Enters VMX operation. Virtualization is off, and CR4 is @cr4. Returns false, with nothing
 * changed, if this CPU refuses.
 */
static __always_inline bool vmx_virt_turn_on(u64 cr4)
{
	vmx_virt_set_cr4(cr4 | X86_CR4_VMXE);
	if (likely(vmxon(this_cpu_ptr(&vmx_virt_vmxon_pa))))
		return true;
	vmx_virt_set_cr4(cr4);
	return false;
}

/* The opposite of vmx_virt_turn_on(). */
static __always_inline void vmx_virt_turn_off(void)
{
	vmxoff();
	vmx_virt_set_cr4(__read_cr4() & ~X86_CR4_VMXE);
}

#endif /* VIRT_VMX_H */
