/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VT-x beside KVM (kvm.c): for the time of one entry, interrupts off, the CPU
 * is borrowed from KVM, or where KVM has virtualization off, taken.
 *
 *  - CR4.VMXE and VMX operation: as they were found. Where they are off, they
 *    are turned on and off again, by hand, so that KVM never finds them on;
 *  - the current VMCS, which KVM believes to know: put back;
 *  - our own VMCS is cleared after each exit: KVM may leave VMX operation at
 *    any time that interrupts are on, which an active VMCS would not survive
 *    (SDM 25.11.1), nor would we notice. So its registers are not at hand
 *    later: VMX_PENDING_ACTIVATE;
 *  - system-call MSRs: KVM 6.1 reads the host's values in an interrupt, when
 *    it turns virtualization on. The processor switches them (vmx_host.c).
 *
 * VPIDs: vmx.c. What is mapped is tagged with the root of the EPT as well.
 *
 * Inline, for an entry in vmx_vcpu.c: each instruction counts.
 */
#ifndef DUNE_VMX_KVM_H
#define DUNE_VMX_KVM_H

#include <linux/irqflags.h>
#include <asm/processor-flags.h>
#include <asm/special_insns.h>

#include "dune/vmx/vmx.h"
#include "x86/vmx/instructions.h"

/* Not the kernel's, which remembers, for KVM to look. */
static __always_inline void vmx_set_cr4(u64 cr4)
{
	asm volatile("mov %0, %%cr4" : : "r" (cr4) : "memory");
}

/*
 * Virtualization is off, and CR4 as given: into VMX operation. Returns false,
 * with nothing changed, if this CPU refuses.
 */
static __always_inline bool vmx_turn_on(u64 cr4)
{
	vmx_set_cr4(cr4 | X86_CR4_VMXE);
	if (likely(vmxon(this_cpu_ptr(&vmx_vmxon_pa))))
		return true;
	vmx_set_cr4(cr4);
	return false;
}

static __always_inline void vmx_turn_off(void)
{
	vmxoff();
	vmx_set_cr4(__read_cr4() & ~X86_CR4_VMXE);
}

/*
 * vcpu_hw.loan: no VMCS of KVM's is to be put back, in three ways. Where one
 * is, it is its physical address, which is none of these.
 */
#define VMX_LOAN_OFF		0ULL	/* turn virtualization off */
#define VMX_LOAN_OUTSIDE	1ULL	/* leave VMX operation, keep CR4.VMXE */
#define VMX_LOAN_NONE		(~0ULL)	/* as VMPTRST says it */

/*
 * Interrupts off: our VMCS becomes the current one, however the CPU is found.
 * @fresh: its page is new, and its state undefined.
 *
 * A thread of KVM's that turns virtualization on or off, in two steps, may
 * have been switched away from in between: then CR4.VMXE is set, and VMPTRST
 * faults.
 */
static inline bool vmx_borrow(struct vcpu_hw *hw, bool fresh)
{
	u64 cr4 = __read_cr4();

	if (!(cr4 & X86_CR4_VMXE)) {
		hw->loan = VMX_LOAN_OFF;
		if (!vmx_turn_on(cr4))
			return false;
	} else if (!vmptrst(&hw->loan)) {
		hw->loan = VMX_LOAN_OUTSIDE;
		if (!vmxon(this_cpu_ptr(&vmx_vmxon_pa)))
			return false;
	}
	if (fresh)
		vmclear(&hw->vmcs_pa);
	vmptrld(&hw->vmcs_pa);
	return true;
}

/* First of what ends each loan. */
static __always_inline void vmx_let_go(struct vcpu_hw *hw)
{
	vmclear(&hw->vmcs_pa);
	hw->pending |= VMX_PENDING_ACTIVATE;
}

/* The mirror of vmx_borrow(). */
static inline void vmx_give_back(struct vcpu_hw *hw)
{
	vmx_let_go(hw);
	switch (hw->loan) {
	case VMX_LOAN_OFF:
		vmx_turn_off();
		break;
	case VMX_LOAN_OUTSIDE:
		vmxoff();
		break;
	case VMX_LOAN_NONE:
		break;
	default:
		vmptrld(&hw->loan);
	}
}

#endif /* DUNE_VMX_KVM_H */
