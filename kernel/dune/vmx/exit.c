// SPDX-License-Identifier: GPL-2.0-only
/*
 * Why the guest was left, and what is done about it: one switch. What the
 * guest may not do is answered from the table in vmx_controls.c.
 */
#include <asm/processor.h>

#include "virt/compat.h"
#include "dune/dune.h"
#include "dune/trace.h"
#include "dune/vendor.h"
#include "dune/vmx/vmx.h"

/* RIP behind the instruction that caused the exit. */
static void vmx_skip(struct vcpu_hw *hw)
{
	hw->pending |= VMX_PENDING_SKIP;
}

/*
 * Raise a hardware exception in the guest. It replaces one whose delivery
 * was interrupted: its instruction runs again and raises it anew.
 */
static void vmx_inject(struct vcpu_hw *hw, unsigned int vector, bool has_error)
{
	hw->event = vector | INTR_TYPE_HARD_EXCEPTION | INTR_INFO_VALID_MASK;
	if (has_error)
		hw->event |= INTR_INFO_DELIVER_CODE_MASK;
	hw->event_error = 0;
	hw->pending |= VMX_PENDING_EVENT;
}

/*
 * The exit came while an event was being delivered (SDM 28.2.4): deliver it
 * again at the next entry. Software interrupts and exceptions are repeated by
 * their instruction, on which RIP still stands.
 */
static void vmx_requeue_event(struct vcpu_hw *hw)
{
	u32 event = hw->exit.vectoring;

	switch (event & VECTORING_INFO_TYPE_MASK) {
	case INTR_TYPE_EXT_INTR:
	case INTR_TYPE_HARD_EXCEPTION:
		hw->event = event & ~INTR_INFO_UNBLOCK_NMI;
		hw->event_error = hw->exit.vectoring_error;
		hw->pending |= VMX_PENDING_EVENT;
	}
}

/*
 * A walk of the guest's page table counts as a write, as it does on SVM: the
 * processor sets bits in the entries. With accessed and dirty bits in EPT it
 * demands it (SDM 29.3.3.2), and not every implementation says so.
 */
static int vmx_fault(struct dune_vcpu *vcpu)
{
	const struct vmx_exit *exit = &vcpu->hw->exit;
	u64 info = exit->qualification;
	u32 flags = 0;

	if (info & EPT_VIOLATION_ACC_WRITE)
		flags |= DUNE_FAULT_WRITE;
	if (info & EPT_VIOLATION_ACC_INSTR)
		flags |= DUNE_FAULT_EXEC;
	if ((info & EPT_VIOLATION_GVA_IS_VALID) &&
	    !(info & EPT_VIOLATION_GVA_TRANSLATED))
		flags |= DUNE_FAULT_TABLE | DUNE_FAULT_WRITE;
	return dune_handle_fault(vcpu, exit->guest_physical, flags);
}

/*
 * CPUID leaves unconditionally. It tells a process what it tells it natively,
 * but for the one bit that follows from a CR4 bit which the guest has not.
 */
static int vmx_cpuid(struct dune_vcpu *vcpu)
{
	struct dune_regs *regs = &vcpu->run->regs;
	u32 leaf = READ_ONCE(regs->rax), subleaf = READ_ONCE(regs->rcx);
	u32 eax = leaf, ebx, ecx = subleaf, edx;

	dune_count(vcpu, DUNE_COUNT_OTHER);
	if (vcpu->filter & _TIF_NOCPUID) {
		vmx_inject(vcpu->hw, 13, true);
		return 0;
	}
	native_cpuid(&eax, &ebx, &ecx, &edx);
	if (leaf == 7 && !subleaf)
		ecx &= ~BIT(4);	/* OSPKE */
	regs->rax = eax;
	regs->rbx = ebx;
	regs->rcx = ecx;
	regs->rdx = edx;
	vmx_skip(vcpu->hw);
	return 0;
}

static int vmx_wrmsr(struct dune_vcpu *vcpu)
{
	const struct dune_regs *regs = &vcpu->run->regs;
	u64 value = (u32)READ_ONCE(regs->rax) | READ_ONCE(regs->rdx) << 32;

	if (vmx_set_msr(vcpu->hw, READ_ONCE(regs->rcx), value)) {
		dune_count(vcpu, DUNE_COUNT_EXCEPTION);
		vmx_inject(vcpu->hw, 13, true);
	} else {
		dune_count(vcpu, DUNE_COUNT_OTHER);
		vmx_skip(vcpu->hw);
	}
	return 0;
}

static int vmx_exception(struct dune_vcpu *vcpu)
{
	struct vcpu_hw *hw = vcpu->hw;
	u32 info = hw->exit.interruption;
	u32 type = info & INTR_INFO_INTR_TYPE_MASK;
	u32 vector = info & INTR_INFO_VECTOR_MASK;
	u64 rip = hw->exit.rip;

	/* These the host has taken by now (vmx_enter()). */
	if (type == INTR_TYPE_NMI_INTR || vector == 18) {
		dune_count(vcpu, DUNE_COUNT_INTERRUPT);
		return 0;
	}
	dune_count(vcpu, DUNE_COUNT_OTHER);
	/* A split lock: elsewhere it is the kernel's to say what follows, too. */
	if (vector == 17 && !hw->exit.checks_alignment &&
	    static_call(vmx_split_lock)(rip))
		return 0;
	/* INT1: a trap, behind the instruction. */
	if (type == INTR_TYPE_PRIV_SW_EXCEPTION)
		vmx_skip(hw);
	vmx_inject(hw, vector, vector == 17);
	return 0;
}

static noinline int vmx_handle_other(struct dune_vcpu *vcpu)
{
	struct vcpu_hw *hw = vcpu->hw;
	u32 reason = hw->exit.reason;

	if (unlikely(reason & VMX_EXIT_REASONS_FAILED_VMENTRY)) {
		dune_count(vcpu, DUNE_COUNT_OTHER);
		/* The host has taken it by now: only repeat the entry. */
		if (reason == VMX_REASON_MCE_AT_ENTRY)
			return 0;
		vmx_reset_state(hw);
		return DUNE_EXIT_INVALID;
	}
	if (unlikely(hw->exit.vectoring & VECTORING_INFO_VALID_MASK))
		vmx_requeue_event(hw);

	switch (reason) {
	case EXIT_REASON_EPT_VIOLATION:
		return vmx_fault(vcpu);
	case EXIT_REASON_EXTERNAL_INTERRUPT:
	case EXIT_REASON_PREEMPTION_TIMER:
		dune_count(vcpu, DUNE_COUNT_INTERRUPT);
		return 0;
	case EXIT_REASON_EXCEPTION_NMI:
		return vmx_exception(vcpu);
	case EXIT_REASON_INTERRUPT_WINDOW:
		/* vmx_enter() offers the interrupt again. */
		dune_count(vcpu, DUNE_COUNT_OTHER);
		return 0;
	case EXIT_REASON_BUS_LOCK:
		/* A trap: RIP is behind the instruction. */
		dune_count(vcpu, DUNE_COUNT_OTHER);
		dune_bus_lock(hw->exit.rip);
		return 0;
	case EXIT_REASON_CPUID:
		return vmx_cpuid(vcpu);
	case EXIT_REASON_MSR_WRITE:
		return vmx_wrmsr(vcpu);
	case EXIT_REASON_HLT:
		dune_count(vcpu, DUNE_COUNT_OTHER);
		vmx_skip(hw);
		return DUNE_EXIT_HLT;
	case EXIT_REASON_TRIPLE_FAULT:
		dune_count(vcpu, DUNE_COUNT_OTHER);
		return DUNE_EXIT_SHUTDOWN;
	default:
		return dune_forbidden(vcpu, vmx_answer(reason), vmx_inject);
	}
}

static noinline int trace_and_handle(struct dune_vcpu *vcpu)
{
	const struct vcpu_hw *hw = vcpu->hw;

	trace_dune_exit(hw->exit.reason, hw->exit.rip, hw->exit.qualification,
			hw->exit.guest_physical);
	if (hw->exit.reason == EXIT_REASON_VMCALL)
		return dune_hypercall(vcpu, hw->irq);
	return vmx_handle_other(vcpu);
}

/*
 * A hypercall, the hot path, is alone here, so that the compiler saves no
 * registers for the rest. It never interrupts the delivery of an event. There
 * are tracepoints on this path, and no other tracing, which costs a NOP.
 */
notrace int vmx_handle_exit(struct dune_vcpu *vcpu)
{
	const struct vcpu_hw *hw = vcpu->hw;

	if (trace_dune_exit_enabled())
		return trace_and_handle(vcpu);
	if (likely(hw->exit.reason == EXIT_REASON_VMCALL))
		return dune_hypercall(vcpu, hw->irq);
	return vmx_handle_other(vcpu);
}
