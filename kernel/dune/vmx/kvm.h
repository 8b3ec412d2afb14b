/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VT-x while KVM is loaded (virt/kvm.c): an entry borrows the CPU from KVM, with interrupts
 * off, and returns it before interrupts are on again. The entry leaves these parts of the CPU's
 * state as it found them:
 *
 *  - CR4.VMXE and VMX operation. If they are off, the entry turns them on, and off again
 *    after the exit, so that KVM never finds them on.
 *  - The current VMCS, which KVM relies on: it is made current again.
 *  - Our VMCS is cleared after each exit. KVM may leave VMX operation at any time that
 *    interrupts are on; an active VMCS would be lost (SDM 25.11.1), and Dune would not
 *    notice. So the guest's registers cannot simply be read later: VMX_PENDING_UNREAD.
 *  - System-call MSRs. KVM 6.1 reads the host's values in an interrupt, when it turns
 *    virtualization on. The processor switches them (host.c).
 *
 * VPIDs are explained in virt/vmx.c. The functions are inline for enter.c: each
 * instruction counts there.
 */
#ifndef DUNE_VMX_KVM_H
#define DUNE_VMX_KVM_H

#include <asm/processor-flags.h>
#include <asm/special_insns.h>

#include "dune/vmx/vmx.h"
#include "virt/vmx.h"

/*
 * Makes our VMCS the current one, in any state in which KVM may have left this CPU. Interrupts
 * are off.
 * @fresh: the page of our VMCS is new, and its state undefined. Returns false if the
 * CPU refuses.
 *
 * A KVM thread that turns virtualization on or off, in two steps, may have been
 * switched away from between them: then CR4.VMXE is set, and VMPTRST faults.
 */
static inline bool vmx_borrow(struct vcpu_hw *hw, bool fresh)
{
	u64 cr4 = __read_cr4();

	if (!(cr4 & X86_CR4_VMXE)) {
		hw->loan.found = VMX_FOUND_OFF;
		if (!vmx_virt_turn_on(cr4))
			return false;
	} else if (vmptrst(&hw->loan.vmcs)) {
		hw->loan.found = VMX_FOUND_ON;
	} else {
		hw->loan.found = VMX_FOUND_OUTSIDE;
		if (!vmxon(this_cpu_ptr(&vmx_virt_vmxon_pa)))
			return false;
	}
	if (fresh)
		vmclear(&hw->vmcs_pa);
	vmptrld(&hw->vmcs_pa);
	return true;
}

/* Clears our VMCS: the first step of giving the CPU back. */
static __always_inline void vmx_clear(struct vcpu_hw *hw)
{
	vmclear(&hw->vmcs_pa);
	hw->pending |= VMX_PENDING_ACTIVATE;
}

/* Makes KVM's VMCS current again, if KVM had one. */
static __always_inline void vmx_return_vmcs(const struct vcpu_hw *hw)
{
	if (hw->loan.vmcs != VMCS_NONE)
		vmptrld(&hw->loan.vmcs);
}

/* The opposite of vmx_borrow(). */
static inline void vmx_give_back(struct vcpu_hw *hw)
{
	vmx_clear(hw);
	switch (hw->loan.found) {
	case VMX_FOUND_ON:
		vmx_return_vmcs(hw);
		break;
	case VMX_FOUND_OUTSIDE:
		vmxoff();
		break;
	case VMX_FOUND_OFF:
		vmx_virt_turn_off();
		break;
	}
}

#endif /* DUNE_VMX_KVM_H */
