// SPDX-License-Identifier: GPL-2.0-only
/*
 * VT-x beside KVM (kvm.c): for the time of one entry, interrupts off, the CPU
 * is borrowed from KVM, or where KVM has virtualization off, taken.
 *
 *  - CR4.VMXE and VMX operation: as they were found. Where they are off, they
 *    are turned on and off again, by hand, so that KVM never finds them on;
 *  - the current VMCS, which KVM believes to know: put back;
 *  - our own VMCS is cleared after each exit: KVM may leave VMX operation at
 *    any time that interrupts are on, which an active VMCS would not survive
 *    (SDM 25.11.1), nor would we notice;
 *  - system-call MSRs: KVM 6.1 reads the host's values in an interrupt, when
 *    it turns virtualization on. They are the host's again after each exit.
 *
 * VPIDs: vmx.c. What is mapped is tagged with the root of the EPT as well.
 */
#include <linux/irqflags.h>
#include <asm/processor-flags.h>
#include <asm/special_insns.h>

#include "vmx.h"
#include "vmx_ops.h"

/* Not the kernel's, which remembers, for KVM to look. */
static void set_cr4(u64 cr4)
{
	asm volatile("mov %0, %%cr4" : : "r" (cr4) : "memory");
}

/*
 * Interrupts off: our VMCS becomes the current one. Returns false, with
 * nothing changed, if this CPU refuses to enter VMX operation.
 *
 * A thread of KVM's that turns virtualization on or off, in two steps, may
 * have been switched away from in between: then CR4.VMXE is set, and VMPTRST
 * faults.
 */
bool vmx_borrow(struct vcpu_hw *hw)
{
	struct vmx_loan *loan = &hw->loan;

	loan->cr4 = __read_cr4();
	loan->vmcs = ~0ULL;
	loan->taken = false;
	if (!(loan->cr4 & X86_CR4_VMXE) || !vmptrst(&loan->vmcs)) {
		set_cr4(loan->cr4 | X86_CR4_VMXE);
		loan->taken = vmx_on();
		if (!loan->taken) {
			set_cr4(loan->cr4);
			return false;
		}
	}
	vmx_activate(hw);
	vmx_load_msrs(hw);
	return true;
}

/* The mirror of vmx_borrow(). What .put will want to know is read before. */
void vmx_give_back(struct vcpu_hw *hw)
{
	const struct vmx_loan *loan = &hw->loan;

	vmx_read_regs(hw);
	vmx_restore_msrs(hw);
	vmx_deactivate(hw);
	if (loan->taken) {
		vmxoff();
		set_cr4(loan->cr4);
	} else if (loan->vmcs != ~0ULL) {
		vmptrld(loan->vmcs);
	}
}
