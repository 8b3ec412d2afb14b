// SPDX-License-Identifier: GPL-2.0-only
/*
 * Into a VT-x guest and back: the work around the world switch (switch.S).
 *
 * vmx_enter() chooses the way (enum entry_way). There is a copy of enter() for each way:
 * begin_entry() makes the VMCS current, vmx_switch() runs the guest, read_exit() and
 * read_hypercall() collect what the handler needs, and end_entry() gives the CPU back. While KVM is
 * loaded, enter_slow() handles what the fast ways cannot. It calls enter() only with ENTRY_OWN or
 * ENTRY_BORROWED, which never call enter_slow(), so there is no recursion.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/moduleparam.h>
#include <linux/printk.h>
#include <asm/msr.h>
#include <asm/trapnr.h>

#include "dune/compat.h"
#include "dune/vmx/kvm.h"
#include "dune/vmx/vmx.h"
#include "x86/msr.h"

/*
 * A guest can make the processor read from its first-level cache by a page table entry
 * that is not present (L1 terminal fault, CVE-2018-3646; Linux:
 * admin-guide/hw-vuln/l1tf.rst), and EPT does not prevent it. A flush before
 * each entry does. A processor without the command for it needs newer microcode.
 */
static bool l1d_flush = true;
module_param(l1d_flush, bool, 0444);
MODULE_PARM_DESC(l1d_flush, "flush the L1 data cache at each entry, on processors that are vulnerable without (default on)");
static DEFINE_STATIC_KEY_FALSE(vmx_flushes_l1d);

/* Decides whether entries flush the L1 data cache. Called at load; may sleep. */
void vmx_enter_init(void)
{
	if (!boot_cpu_has_bug(X86_BUG_L1TF) || cpu_mitigations_off() || !l1d_flush)
		return;
	if (boot_cpu_has(X86_FEATURE_FLUSH_L1D))
		static_branch_enable(&vmx_flushes_l1d);
	else
		pr_notice("this CPU is vulnerable to L1TF and its microcode has no flush: run no program that you do not trust\n");
}

/* Carries out what is pending. Interrupts are off. */
static noinline void prepare(struct vcpu_hw *hw)
{
	if (hw->pending & (VMX_PENDING_HOST | VMX_PENDING_ACTIVATE))
		vmx_activate(hw);
	vmx_write_pending(hw);
}

/* Reads what vmx_handle_other() needs, while the VMCS is current. */
static void read_exit(struct vcpu_hw *hw)
{
	struct vmx_exit *exit = &hw->exit;

	exit->qualification = vmcs_read(EXIT_QUALIFICATION);
	exit->gpa = vmcs_read(GUEST_PHYSICAL_ADDRESS);
	exit->interruption = vmcs_read(VM_EXIT_INTR_INFO);
	exit->vectoring = vmcs_read(IDT_VECTORING_INFO_FIELD);
	exit->vectoring_error = vmcs_read(IDT_VECTORING_ERROR_CODE);
	exit->instruction_length = vmcs_read(VM_EXIT_INSTRUCTION_LEN);
	if (exit->reason == EXIT_REASON_EXCEPTION_NMI)
		exit->checks_alignment =
			VMX_AR_DPL(vmcs_read(GUEST_SS_AR_BYTES)) == 3 &&
			vmcs_read(GUEST_RFLAGS) & X86_EFLAGS_AC;
}

/*
 * vmx_handle_exit() carries out the hypercall. RIP is moved to the next instruction here,
 * while the VMCS is current. In ring 3 VMCALL is no hypercall: it raises #UD there, as on
 * a machine without virtualization.
 */
static __always_inline void read_hypercall(struct vcpu_hw *hw)
{
	if (unlikely(vmcs_read(GUEST_SS_AR_BYTES) & 3 << VMX_AR_DPL_SHIFT)) {
		hw->exit.reason |= VMX_REASON_OUTER_RING;
		hw->exit.rip = vmcs_read(GUEST_RIP);
		hw->exit.vectoring = 0;
		return;
	}
	hw->exit.rip = vmcs_read(GUEST_RIP);
	vmcs_write(GUEST_RIP, hw->exit.rip + VMCALL_LENGTH);
	if (unlikely(vmcs_read(GUEST_INTERRUPTIBILITY_INFO)))
		vmcs_write(GUEST_INTERRUPTIBILITY_INFO, 0);
}

/*
 * If the exit consumed an event for the host, the host gets it now. Returns whether an
 * interrupt of the host, which is still pending, ended the guest.
 */
static bool pass_host_event(const struct vmx_exit *exit)
{
	switch (exit->reason) {
	case EXIT_REASON_EXCEPTION_NMI:
		/* NMIs are blocked until the handler's IRET (SDM 28.1). */
		if ((exit->interruption & INTR_INFO_INTR_TYPE_MASK) == INTR_TYPE_NMI_INTR)
			asm volatile("int $2");
		else if ((exit->interruption & INTR_INFO_VECTOR_MASK) == X86_TRAP_MC)
			exit_machine_check();
		return false;
	case VMX_REASON_MCE_AT_ENTRY:
		exit_machine_check();
		return false;
	case EXIT_REASON_EXTERNAL_INTERRUPT:
	case EXIT_REASON_PREEMPTION_TIMER:
		return true;
	default:
		return false;
	}
}

/*
 * Records that the processor refused the entry. @error: VM-instruction error. Returns false: no
 * interrupt of the host ended the guest.
 */
static noinline bool record_failed_entry(struct vcpu_hw *hw, u64 error)
{
	hw->exit.reason = VMX_EXIT_REASONS_FAILED_VMENTRY;
	hw->exit.qualification = error;
	hw->exit.rip = 0;
	return false;
}

/*
 * Records that this CPU refused VMXON, before anything was written to the VMCS: the state and what
 * is pending stay. Returns false: no interrupt of the host ended the guest.
 */
static noinline bool record_refusal(struct vcpu_hw *hw)
{
	hw->exit.reason = VMX_REASON_CPU_REFUSED;
	hw->exit.qualification = 0;
	hw->exit.rip = 0;
	return false;
}

/*
 * How an entry gets the CPU. Each place at which enter() is inlined has a constant value, so the
 * compiler removes the tests of @way.
 */
enum entry_way {
	ENTRY_OWN,	/* KVM is not loaded: virt/ has virtualization on */
	ENTRY_KVM_OFF,	/* KVM has virtualization off */
	ENTRY_KVM_ON,	/* KVM has virtualization on */
	ENTRY_BORROWED,	/* KVM is loaded: vmx_borrow() was already called */
};

static bool enter_slow(struct dune_vcpu *vcpu);

/*
 * Makes the VMCS the current one, by @way. Returns false, with nothing to undo, if this way is not
 * possible on this CPU. @found_cr4: for ENTRY_KVM_OFF.
 */
static __always_inline bool begin_entry(struct vcpu_hw *hw, const enum entry_way way, u64 found_cr4)
{
	switch (way) {
	case ENTRY_OWN:
		if (unlikely(hw->pending))
			prepare(hw);
		break;
	case ENTRY_KVM_OFF:
		if (unlikely(!vmx_virt_turn_on(found_cr4)))
			return false;
		vmptrld(&hw->vmcs_pa);
		break;
	case ENTRY_KVM_ON:
		if (unlikely(!vmptrst(&hw->loan.vmcs)))
			return false;
		vmptrld(&hw->vmcs_pa);
		break;
	case ENTRY_BORROWED:
		break;
	}
	return true;
}

/* The opposite of begin_entry(): gives the CPU back. */
static __always_inline void end_entry(struct vcpu_hw *hw, enum entry_way way)
{
	/*
	 * Without this the compiler keeps addresses in @hw in registers of their own, which
	 * the function must then save.
	 */
	OPTIMIZER_HIDE_VAR(hw);
	switch (way) {
	case ENTRY_OWN:
		break;
	case ENTRY_KVM_OFF:
		vmx_clear(hw);
		hw->pending |= VMX_PENDING_UNREAD;
		vmx_virt_turn_off();
		break;
	case ENTRY_KVM_ON:
		vmx_clear(hw);
		hw->pending |= VMX_PENDING_UNREAD;
		vmx_return_vmcs(hw);
		break;
	case ENTRY_BORROWED:
		vmx_give_back(hw);
		hw->pending |= VMX_PENDING_UNREAD;
		break;
	}
}

/* Saves and writes CR3, CR4, LDTR and DEBUGCTL, which can have changed since the last exit. */
static __always_inline void write_changed_host(struct vcpu_hw *hw)
{
	u64 cr3 = __native_read_cr3(), cr4 = __read_cr4();
	u32 ldt;

	if (unlikely(cr3 != hw->host.cr3))
		vmcs_write(HOST_CR3, hw->host.cr3 = cr3);
	if (unlikely(cr4 != hw->host.cr4))
		vmcs_write(HOST_CR4, hw->host.cr4 = cr4);
	/*
	 * The exit makes LDTR null (SDM 28.5.2). An interrupt since the last exit may have loaded
	 * it, for another thread's modify_ldt(). It is read to a register: with a
	 * variable in memory enter()'s call of enter_slow() would not be a jump (run.c).
	 */
	asm volatile("sldt %0" : "=r" (ldt));
	if (unlikely(ldt))
		hw->host.ldt = ldt;
	/* Interrupts change DEBUGCTL, for perf. */
	hw->host.debugctl = msr_read(MSR_IA32_DEBUGCTLMSR);
}

/* Restores what the exit cleared (SDM 28.5.1). */
static __always_inline void restore_after_exit(const struct vcpu_hw *hw)
{
	exit_restore_dr7();
	if (unlikely(hw->host.debugctl))
		wrmsrq(MSR_IA32_DEBUGCTLMSR, hw->host.debugctl);
}

/*
 * Inline: two returns lead from vmx_switch() to the run loop (run.c). The arguments are those of
 * begin_entry().
 */
static __always_inline bool enter(struct dune_vcpu *vcpu, const enum entry_way way, u64 found_cr4)
{
	struct vcpu_hw *hw = vcpu->hw;

	if (!begin_entry(hw, way, found_cr4))
		return way == ENTRY_KVM_ON ? enter_slow(vcpu) : record_refusal(hw);
	write_changed_host(hw);
	if (unlikely(hw->cr2 != native_read_cr2()))
		native_write_cr2(hw->cr2);
	if (static_branch_unlikely(&vmx_flushes_l1d))
		wrmsrq(MSR_IA32_FLUSH_CMD, L1D_FLUSH);

	/* While KVM is loaded the VMCS is cleared after each exit, so it is never launched. */
	if (unlikely(vmx_switch(&vcpu->run->regs, way == ENTRY_OWN && hw->launched,
				&hw->host_rsp))) {
		record_failed_entry(hw, vmcs_read(VM_INSTRUCTION_ERROR));
		end_entry(hw, way);
		return false;
	}
	/* CR2 is not in the VMCS, and the host's next page fault changes it. */
	hw->cr2 = native_read_cr2();
	restore_after_exit(hw);

	/* Other bits describe some exits further (SDM 25.9.1), as of a guest in an enclave. */
	hw->exit.reason = vmcs_read(VM_EXIT_REASON) & VMX_REASON_MASK;
	if (way == ENTRY_OWN && unlikely(!hw->launched))
		hw->launched = !(hw->exit.reason & VMX_EXIT_REASONS_FAILED_VMENTRY);
	if (likely(hw->exit.reason == EXIT_REASON_VMCALL)) {
		read_hypercall(hw);
		end_entry(hw, way);
		return false;
	}
	hw->exit.rip = vmcs_read(GUEST_RIP);
	read_exit(hw);
	end_entry(hw, way);
	return pass_host_event(&hw->exit);
}

/*
 * The slow path while KVM is loaded: the VMCS has to be written first, or it is still active
 * from the time before, or CR4.VMXE is set while the CPU is outside of VMX operation.
 */
static noinline bool enter_slow(struct dune_vcpu *vcpu)
{
	struct vcpu_hw *hw = vcpu->hw;

	if (!vmx_is_with_kvm(hw))
		return enter(vcpu, ENTRY_OWN, 0);
	if (!vmx_borrow(hw, hw->pending & VMX_PENDING_SETUP))
		return record_refusal(hw);
	vmx_write_pending(hw);
	return enter(vcpu, ENTRY_BORROWED, 0);
}

static noinline notrace bool enter_with_kvm_on(struct dune_vcpu *vcpu)
{
	return enter(vcpu, ENTRY_KVM_ON, 0);
}

static noinline notrace bool enter_with_kvm_off(struct dune_vcpu *vcpu, u64 cr4)
{
	return enter(vcpu, ENTRY_KVM_OFF, cr4);
}

static noinline notrace bool enter_with_kvm(struct dune_vcpu *vcpu, bool flush)
{
	u64 cr4;

	if (unlikely(flush))
		vcpu->hw->pending |= VMX_PENDING_FLUSH;
	if (unlikely(!vmx_is_ready_with_kvm(vcpu->hw)))
		return enter_slow(vcpu);
	cr4 = __read_cr4();
	if (cr4 & X86_CR4_VMXE)
		return enter_with_kvm_on(vcpu);
	return enter_with_kvm_off(vcpu, cr4);
}

static noinline notrace bool enter_own(struct dune_vcpu *vcpu, bool flush)
{
	if (unlikely(flush))
		vcpu->hw->pending |= VMX_PENDING_FLUSH;
	return enter(vcpu, ENTRY_OWN, 0);
}

/*
 * Implements @enter of struct vcpu_ops. Each way has a function of its own, since a function
 * begins by saving all registers that it uses.
 */
notrace bool vmx_enter(struct dune_vcpu *vcpu, bool flush)
{
	if (static_branch_unlikely(&virt_kvm_loaded))
		return enter_with_kvm(vcpu, flush);
	return enter_own(vcpu, flush);
}
