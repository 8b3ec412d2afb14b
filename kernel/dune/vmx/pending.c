// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes to the current VMCS what the next entry needs: the bits of vcpu_hw.pending. All
 * functions are for interrupts off.
 */
#include <linux/lockdep.h>
#include <asm/trap_pf.h>

#include "dune/vmx/vmx.h"

static void write_regs(struct vcpu_hw *hw)
{
	vmcs_write(GUEST_RIP, hw->rip);
	vmcs_write(GUEST_RSP, hw->rsp);
	vmcs_write(GUEST_RFLAGS, hw->rflags);
	if (!hw->keeps_shadow) {
		vmcs_write(GUEST_INTERRUPTIBILITY_INFO, 0);
		vmcs_write(GUEST_PENDING_DBG_EXCEPTIONS, 0);
	}
}

/*
 * Injects vcpu_hw.event. Its delivery ends the shadow of the previous instruction. The ring is read
 * here for vmx_raise_fault(), since the VMCS is current here.
 */
static void write_event(struct vcpu_hw *hw)
{
	if (hw->pending & VMX_PENDING_RING &&
	    VMX_AR_DPL(vmcs_read(GUEST_SS_AR_BYTES)) == 3)
		hw->event_error |= X86_PF_USER;
	vmcs_write(VM_ENTRY_INTR_INFO_FIELD, hw->event);
	vmcs_write(VM_ENTRY_EXCEPTION_ERROR_CODE, hw->event_error);
	vmcs_write(GUEST_INTERRUPTIBILITY_INFO, 0);
	vmcs_write(GUEST_PENDING_DBG_EXCEPTIONS, 0);
}

/* Writes everything but the interrupt: offer_interrupt(). */
static void write_fields(struct vcpu_hw *hw)
{
	u32 pending = hw->pending;

	if (pending & VMX_PENDING_SETUP)
		vmx_write_setup(hw);
	if (pending & VMX_PENDING_CONTROLS)
		vmcs_write(CPU_BASED_VM_EXEC_CONTROL, hw->controls);
	if (pending & VMX_PENDING_CPU) {
		vmx_host_write_cpu(&hw->host);
		hw->tag.generation = 0;
	}
	if (pending & VMX_PENDING_HOST) {
		vmcs_write(HOST_FS_BASE, hw->host.fs_base);
		if (vmx_tag_take(hw))
			vmcs_write(VIRTUAL_PROCESSOR_ID, hw->tag.number);
	}
	if (pending & VMX_PENDING_MSRS)
		vmx_write_lists(hw);
	if (pending & VMX_PENDING_STATE)
		vmx_write_state(&hw->state);
	if (pending & VMX_PENDING_REGS)
		write_regs(hw);
	if (pending & VMX_PENDING_SKIP) {
		vmcs_write(GUEST_RIP, vmcs_read(GUEST_RIP) + hw->exit.instruction_length);
		vmcs_write(GUEST_INTERRUPTIBILITY_INFO, 0);
	}
	if (pending & VMX_PENDING_EVENT)
		write_event(hw);
	if (pending & VMX_PENDING_FLUSH)
		vmx_tag_flush(hw);
}

/*
 * Returns whether the guest can take an interrupt at this entry. An event that is in the VMCS goes
 * first (SDM 27.6): that of write_event(), or one that the last entry did not deliver, because a
 * machine check ended that entry (SDM 27.8).
 */
static bool takes_interrupts(void)
{
	return !(vmcs_read(VM_ENTRY_INTR_INFO_FIELD) & INTR_INFO_VALID_MASK) &&
	       vmcs_read(GUEST_RFLAGS) & X86_EFLAGS_IF &&
	       !(vmcs_read(GUEST_INTERRUPTIBILITY_INFO) &
		 (GUEST_INTR_STATE_STI | GUEST_INTR_STATE_MOV_SS));
}

/*
 * Opens the interrupt window if @on, and closes it otherwise. While it is open, the guest exits
 * as soon as it can take an interrupt.
 */
static void set_window(struct vcpu_hw *hw, bool on)
{
	u32 controls = hw->controls & ~CPU_BASED_INTR_WINDOW_EXITING;

	if (on)
		controls |= CPU_BASED_INTR_WINDOW_EXITING;
	if (controls != hw->controls)
		vmcs_write(CPU_BASED_VM_EXEC_CONTROL, controls);
	hw->controls = controls;
}

/*
 * Offers the interrupt that waits for the guest: injects it if the guest can take it now, and
 * otherwise opens the window, at which the guest leaves. If the interrupt was injected or
 * withdrawn, closes the window.
 */
static void offer_interrupt(struct vcpu_hw *hw)
{
	hw->injected_irq = 0;
	if (hw->irq && takes_interrupts()) {
		vmcs_write(VM_ENTRY_INTR_INFO_FIELD, hw->irq |
			   INTR_TYPE_EXT_INTR | INTR_INFO_VALID_MASK);
		hw->injected_irq = hw->irq;
		hw->irq = 0;
	}
	set_window(hw, hw->irq);
}

/* Writes to the current VMCS all that this entry needs; most entries need nothing. */
void vmx_write_pending(struct vcpu_hw *hw)
{
	u32 pending = hw->pending;

	lockdep_assert_irqs_disabled();
	write_fields(hw);
	hw->pending = 0;
	if (pending & VMX_PENDING_IRQ) {
		offer_interrupt(hw);
		/* The next entry offers it again, or forgets which one this entry injects. */
		if (hw->irq || hw->injected_irq)
			hw->pending = VMX_PENDING_IRQ;
	}
}
