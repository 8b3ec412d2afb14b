// SPDX-License-Identifier: GPL-2.0-only
/*
 * The VMCS of a vCPU, its fields that never change, and the CPU on which it is active. A
 * processor may keep the contents of a VMCS in itself while the VMCS is active there
 * (SDM 25.1), so another CPU can use it only after the first one has cleared it.
 *
 * While KVM is loaded, a VMCS is active only during an entry (kvm.h).
 */
#include <linux/io.h>
#include <linux/kernel.h>
#include <linux/lockdep.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/sched/signal.h>
#include <linux/smp.h>
#include <asm/segment.h>
#include <asm/special_insns.h>

#include "dune/vmx/kvm.h"
#include "dune/vmx/vmx.h"

/* The VMCSs that are active on a CPU. Used only on that CPU, with interrupts off. */
static DEFINE_PER_CPU(struct list_head, active_vmcss);

/*
 * The vCPU whose VMCS this module has last made current on a CPU, for comparisons only: it may be
 * gone. Used as the list is. While KVM is loaded it has no meaning.
 */
DEFINE_PER_CPU(const struct vcpu_hw *, vmx_current_here);

/* Interrupts are off, and the VMCS is active on this CPU. */
static void load_vmcs(struct vcpu_hw *hw)
{
	vmptrld(&hw->vmcs_pa);
	this_cpu_write(vmx_current_here, hw);
}

/* Makes the CPUs' lists of active VMCSs, which are empty. Called at load. */
void vmx_vmcs_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		INIT_LIST_HEAD(&per_cpu(active_vmcss, cpu));
}

/*
 * Writes the fields of the current VMCS that never change. Interrupts are off. (SDM 25.4
 * and 25.5, and 27.2 and 27.3 for what an entry demands.)
 */
void vmx_write_setup(const struct vcpu_hw *hw)
{
	static const u16 zeroes[] = {
		PAGE_FAULT_ERROR_CODE_MASK,
		PAGE_FAULT_ERROR_CODE_MATCH, CR3_TARGET_COUNT,
		VM_EXIT_MSR_STORE_COUNT, VM_EXIT_MSR_LOAD_COUNT,
		VM_ENTRY_MSR_LOAD_COUNT, VM_ENTRY_INTR_INFO_FIELD,
		GUEST_IA32_DEBUGCTL, GUEST_ACTIVITY_STATE,
		HOST_DS_SELECTOR, HOST_ES_SELECTOR, HOST_FS_SELECTOR,
		HOST_GS_SELECTOR,
	};
	int i;

	lockdep_assert_irqs_disabled();
	for (i = 0; i < ARRAY_SIZE(zeroes); i++)
		vmcs_write(zeroes[i], 0);
	vmcs_write(PIN_BASED_VM_EXEC_CONTROL, vmx_controls[VMX_PIN]);
	if (vmx_controls[VMX_PIN] & PIN_BASED_VMX_PREEMPTION_TIMER)
		vmcs_write(VMX_PREEMPTION_TIMER_VALUE, vmx_timer);
	vmcs_write(SECONDARY_VM_EXEC_CONTROL, vmx_controls[VMX_CPU2]);
	vmcs_write(VM_EXIT_CONTROLS, vmx_controls[VMX_EXIT]);
	vmcs_write(VM_ENTRY_CONTROLS, vmx_controls[VMX_ENTRY]);
	vmcs_write(MSR_BITMAP, vmx_msr_bitmap);
	vmcs_write(EPT_POINTER, hw->eptp);
	vmcs_write(VMCS_LINK_POINTER, ~0ULL);
	if (vmx_controls[VMX_CPU2] & SECONDARY_EXEC_ENCLS_EXITING)
		vmcs_write(ENCLS_EXITING_BITMAP, ~0ULL);
	/* One directory for each half of the PASIDs; a page of zeroes has no entry. */
	if (vmx_controls[VMX_CPU2] & SECONDARY_EXEC_PASID_TRANSLATION) {
		vmcs_write(LOW_PASID_DIRECTORY, page_to_phys(ZERO_PAGE(0)));
		vmcs_write(HIGH_PASID_DIRECTORY, page_to_phys(ZERO_PAGE(0)));
	}
	vmcs_write(EXCEPTION_BITMAP, VMX_EXCEPTIONS);

	/* The guest reads CR0 and CR4 from the shadows; to change a bit is an exit. */
	vmcs_write(CR0_GUEST_HOST_MASK, ~0ULL);
	vmcs_write(CR4_GUEST_HOST_MASK, ~0ULL);
	vmcs_write(CR0_READ_SHADOW, DUNE_GUEST_CR0);
	vmcs_write(CR4_READ_SHADOW, hw->cr4);
	vmcs_write(GUEST_CR0, DUNE_GUEST_CR0);
	vmcs_write(GUEST_CR4, hw->cr4 | X86_CR4_VMXE);
	vmcs_write(GUEST_DR7, DR7_FIXED_1);

	vmcs_write(HOST_CR0, read_cr0());
	vmcs_write(HOST_CS_SELECTOR, __KERNEL_CS);
	vmcs_write(HOST_SS_SELECTOR, __KERNEL_DS);
	vmcs_write(HOST_TR_SELECTOR, GDT_ENTRY_TSS * 8);
	vmcs_write(HOST_RIP, (unsigned long)vmx_switch_exit);
}

/*
 * Makes the vCPU's VMCS active and current on this CPU. Interrupts are off. The VMCS is active on
 * no other CPU: the caller has had it cleared there.
 */
void vmx_activate(struct vcpu_hw *hw)
{
	lockdep_assert_irqs_disabled();
	if (hw->cpu < 0) {
		/* The VMCS is clear already, unless its page is new and the state undefined. */
		if (hw->pending & VMX_PENDING_SETUP)
			vmclear(&hw->vmcs_pa);
		hw->launched = false;
		hw->cpu = smp_processor_id();
		list_add(&hw->active, this_cpu_ptr(&active_vmcss));
	}
	WARN_ON_ONCE(hw->cpu != smp_processor_id());
	load_vmcs(hw);
	hw->pending &= ~VMX_PENDING_ACTIVATE;
}

/* Clears the VMCS, on the CPU on which it is active, if on any. Interrupts are off. */
static void deactivate_here(void *argument)
{
	struct vcpu_hw *hw = argument;

	lockdep_assert_irqs_disabled();
	if (hw->cpu < 0)
		return;
	vmclear(&hw->vmcs_pa);
	/* It is not current any more, if it was (SDM 25.11.1). */
	if (this_cpu_read(vmx_current_here) == hw)
		this_cpu_write(vmx_current_here, NULL);
	list_del(&hw->active);
	hw->cpu = -1;
}

/* Returns a vCPU whose VMCS is active on this CPU, or NULL. Interrupts are off. */
struct vcpu_hw *vmx_active_here(void)
{
	lockdep_assert_irqs_disabled();
	return list_first_entry_or_null(this_cpu_ptr(&active_vmcss), struct vcpu_hw, active);
}

/* Reads the registers from the VMCS, which is active on this CPU. Clears it. Interrupts are off. */
void vmx_read_and_deactivate(struct vcpu_hw *hw)
{
	lockdep_assert_irqs_disabled();
	load_vmcs(hw);
	vmx_read_regs(hw);
	deactivate_here(hw);
}

/*
 * Makes the VMCS active on no CPU. Called in process context; waits for the other CPU. A CPU
 * that goes offline clears the VMCS itself.
 */
void vmx_deactivate(struct vcpu_hw *hw)
{
	int cpu = READ_ONCE(hw->cpu);

	if (cpu >= 0)
		smp_call_function_single(cpu, deactivate_here, hw, true);
}

/*
 * Makes the VMCS current on this CPU. Interrupts are off. @how: for release_here(), which must
 * follow. Returns false, with nothing to undo, if this CPU refuses.
 */
static bool make_current_here(struct vcpu_hw *hw, enum vmx_current *how)
{
	lockdep_assert_irqs_disabled();
	if (vmx_is_with_kvm(hw)) {
		*how = VMX_BORROWED;
		return vmx_borrow(hw, false);
	}
	*how = hw->cpu < 0 ? VMX_ACTIVATED : VMX_WAS_ACTIVE;
	vmx_activate(hw);
	return true;
}

/*
 * The opposite of make_current_here(). Only an entry may leave the VMCS active: run_load() has
 * the VMCS cleared only on the CPU of the last entry.
 */
static void release_here(struct vcpu_hw *hw, enum vmx_current how)
{
	lockdep_assert_irqs_disabled();
	switch (how) {
	case VMX_WAS_ACTIVE:
		break;
	case VMX_ACTIVATED:
		deactivate_here(hw);
		hw->pending |= VMX_PENDING_ACTIVATE;
		break;
	case VMX_BORROWED:
		vmx_give_back(hw);
		break;
	}
}

/*
 * Makes the VMCS current on the CPU on which this function returns. Called in process context,
 * with interrupts on. @how: for vmx_release_current(). Returns true with interrupts off, and
 * then vmx_release_current() must follow; or false, with interrupts on, if virtualization is off
 * on this CPU or the CPU refuses.
 */
bool vmx_make_current(struct vcpu_hw *hw, enum vmx_current *how)
{
	for (;;) {
		local_irq_disable();
		if (hw->cpu < 0 || hw->cpu == smp_processor_id())
			break;
		local_irq_enable();
		vmx_deactivate(hw);
	}
	if (virt_is_enabled() && make_current_here(hw, how))
		return true;
	local_irq_enable();
	return false;
}

/* The opposite of vmx_make_current(): interrupts are on again. */
void vmx_release_current(struct vcpu_hw *hw, enum vmx_current how)
{
	release_here(hw, how);
	local_irq_enable();
}

/* Reads the registers from the current VMCS, unless newer ones wait. Interrupts are off. */
void vmx_read_regs(struct vcpu_hw *hw)
{
	lockdep_assert_irqs_disabled();
	if (hw->pending & VMX_PENDING_REGS)
		return;
	hw->rip = vmcs_read(GUEST_RIP);
	hw->rsp = vmcs_read(GUEST_RSP);
	hw->rflags = vmcs_read(GUEST_RFLAGS);
}

/*
 * If the guest continues after the instruction of its last exit, moves its registers there, which
 * were read: VMX_PENDING_UNREAD is not set.
 */
void vmx_skip_in_regs(struct vcpu_hw *hw)
{
	if (!(hw->pending & VMX_PENDING_SKIP))
		return;
	hw->rip += hw->exit.instruction_length;
	hw->keeps_shadow = false;
	hw->pending &= ~VMX_PENDING_SKIP;
	hw->pending |= VMX_PENDING_REGS;
}

/*
 * Reads the registers of the last exit, for @put of struct vcpu_ops, on the CPU of the last
 * entry. Interrupts are off. If the VMCS is active, it is active on this CPU. If it is active on
 * none and VMX_PENDING_UNREAD is not set, the registers were read when it was cleared. If they
 * cannot be read now, VMX_PENDING_UNREAD stays set: this CPU refuses, or it has gone offline and
 * KVM was unloaded.
 */
void vmx_read_last_regs(struct vcpu_hw *hw)
{
	enum vmx_current how;

	lockdep_assert_irqs_disabled();
	if (likely(hw->cpu >= 0)) {
		load_vmcs(hw);
		vmx_read_regs(hw);
	} else if (hw->pending & VMX_PENDING_UNREAD) {
		if (!vmx_is_with_kvm(hw) && !virt_is_enabled())
			return;
		if (!make_current_here(hw, &how))
			return;
		vmx_read_regs(hw);
		release_here(hw, how);
	}
	hw->pending &= ~VMX_PENDING_UNREAD;
}

/*
 * The run ends, and the registers of its last exit were not read. User mode must not get others,
 * so this waits until they can be read, here or on another CPU. If a fatal signal ends the wait,
 * nobody uses them. Called in process context, after @put; sleeps.
 */
void vmx_wait_for_regs(struct vcpu_hw *hw)
{
	enum vmx_current how;

	while (!vmx_make_current(hw, &how)) {
		if (fatal_signal_pending(current))
			return;
		schedule_timeout_uninterruptible(1);
	}
	vmx_read_regs(hw);
	vmx_release_current(hw, how);
	hw->pending &= ~VMX_PENDING_UNREAD;
	vmx_skip_in_regs(hw);
}
