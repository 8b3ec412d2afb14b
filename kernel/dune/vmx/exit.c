// SPDX-License-Identifier: GPL-2.0-only
/*
 * The handler of a VT-x guest's exits: one switch. Forbidden instructions are answered from
 * the table in intercepts.c.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include <linux/sched.h>
#include <asm/cpufeature.h>
#include <asm/processor.h>
#include <asm/trapnr.h>

#include "dune/hypercall.h"
#include "dune/trace/trace.h"
#include "dune/vmx/vmx.h"

/* The guest continues after the instruction that caused the exit. */
static void vmx_skip(struct vcpu_hw *hw)
{
	hw->pending |= VMX_PENDING_SKIP;
}

/* Raises a hardware exception in the guest: the @inject of exit_answer(). */
static void vmx_inject(struct vcpu_hw *hw, unsigned int vector, bool has_error)
{
	hw->event = vector | INTR_TYPE_HARD_EXCEPTION | INTR_INFO_VALID_MASK;
	if (has_error)
		hw->event |= INTR_INFO_DELIVER_CODE_MASK;
	hw->event_error = 0;
	hw->pending |= VMX_PENDING_EVENT;
}

/*
 * The exit came while an event was being delivered (SDM 28.2.4): delivers the event
 * again at the next entry. Software interrupts and exceptions are repeated by
 * their instruction, to which RIP still points.
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
		break;
	}
}

/* Implements @raise_fault of struct vcpu_ops. write_event() adds U/S to the error code. */
bool vmx_raise_fault(struct dune_vcpu *vcpu, u64 address, u32 error)
{
	struct vcpu_hw *hw = vcpu->hw;

	if (hw->exit.vectoring & VECTORING_INFO_VALID_MASK)
		return false;
	vmx_inject(hw, X86_TRAP_PF, true);
	hw->pending |= VMX_PENDING_RING;
	hw->event_error = error;
	hw->cr2 = address;
	return true;
}

/*
 * A walk of the guest's page table counts as a write, as it does on SVM: the processor
 * sets bits in the entries. With accessed and dirty bits in EPT the walk needs the right
 * to write (SDM 29.3.3.2), but not every implementation reports a write (docs/emulators.md).
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
	if ((info & EPT_VIOLATION_GVA_IS_VALID) && !(info & EPT_VIOLATION_GVA_TRANSLATED))
		flags |= DUNE_FAULT_TABLE | DUNE_FAULT_WRITE;
	return fault_handle(vcpu, exit->gpa, flags);
}

/*
 * CPUID always causes an exit. Its result is what a process gets natively, except for
 * the one bit that reflects a bit of CR4 which the guest does not have.
 */
static int vmx_cpuid(struct dune_vcpu *vcpu)
{
	struct dune_regs *regs = &vcpu->run->regs;
	u32 leaf = READ_ONCE(regs->rax), subleaf = READ_ONCE(regs->rcx);
	u32 eax = leaf, ebx, ecx = subleaf, edx;

	if (vcpu->hw->no_cpuid)
		return exit_answer(vcpu, ANSWER_GP, vmx_inject);
	vcpu_count(vcpu, DUNE_COUNT_OTHER);
	native_cpuid(&eax, &ebx, &ecx, &edx);
	if (leaf == 7 && !subleaf)
		ecx &= ~BIT(X86_FEATURE_OSPKE & 31);
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

	if (vmx_set_msr(vcpu->hw, READ_ONCE(regs->rcx), value))
		return exit_answer(vcpu, ANSWER_GP, vmx_inject);
	vcpu_count(vcpu, DUNE_COUNT_OTHER);
	vmx_skip(vcpu->hw);
	return 0;
}

static int vmx_exception(struct dune_vcpu *vcpu)
{
	struct vcpu_hw *hw = vcpu->hw;
	u32 info = hw->exit.interruption;
	u32 type = info & INTR_INFO_INTR_TYPE_MASK;
	u32 vector = info & INTR_INFO_VECTOR_MASK;
	u64 rip = hw->exit.rip;

	/* pass_host_event() has already passed these to the host. */
	if (type == INTR_TYPE_NMI_INTR || vector == X86_TRAP_MC) {
		vcpu_count(vcpu, DUNE_COUNT_INTERRUPT);
		return 0;
	}
	vcpu_count(vcpu, DUNE_COUNT_OTHER);
	/* A split lock: the kernel decides about it, as for any process. */
	if (vector == X86_TRAP_AC && !hw->exit.checks_alignment && exit_split_lock(rip))
		return 0;
	/* INT1 is a trap (SDM vol. 2, INT1): the guest continues after it. */
	if (type == INTR_TYPE_PRIV_SW_EXCEPTION)
		vmx_skip(hw);
	vmx_inject(hw, vector, vector == X86_TRAP_AC);
	return 0;
}

/*
 * While KVM is loaded, an entry may have to turn virtualization on (virt/virt.h), and this CPU has
 * refused. The refusal has nothing to do with the guest's state, so the run keeps that state and
 * waits, as run_settle() does when a CPU refuses while KVM is not loaded. DUNE_RUN waits here, and
 * does not return EAGAIN as DUNE_GET_STATE does: otherwise every program would need a loop that
 * waits. Sleeps until the next tick.
 */
static int vmx_refused(const struct dune_vcpu *vcpu)
{
	pr_err_once("CPU %u refuses to turn virtualization on: stop processor trace (perf's intel_pt); until then guests wait on that CPU\n",
		    vcpu->cpu);
	schedule_timeout_uninterruptible(1);
	return 0;
}

static noinline int vmx_handle_other(struct dune_vcpu *vcpu)
{
	struct vcpu_hw *hw = vcpu->hw;
	u32 reason = hw->exit.reason;

	if (unlikely(reason & VMX_EXIT_REASONS_FAILED_VMENTRY)) {
		vcpu_count(vcpu, DUNE_COUNT_OTHER);
		/* The host has already taken it: repeat the entry. */
		if (reason == VMX_REASON_MCE_AT_ENTRY)
			return 0;
		if (reason == VMX_REASON_CPU_REFUSED)
			return vmx_refused(vcpu);
		/* Nothing was delivered: the interrupt still waits. */
		if (hw->injected_irq)
			hw->irq = hw->injected_irq;
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
		vcpu_count(vcpu, DUNE_COUNT_INTERRUPT);
		return 0;
	case EXIT_REASON_EXCEPTION_NMI:
		return vmx_exception(vcpu);
	case EXIT_REASON_INTERRUPT_WINDOW:
		/* vmx_write_pending() offers the interrupt again before the next entry. */
		vcpu_count(vcpu, DUNE_COUNT_OTHER);
		return 0;
	case EXIT_REASON_BUS_LOCK:
		/* A trap: RIP is that of the next instruction. */
		vcpu_count(vcpu, DUNE_COUNT_OTHER);
		exit_bus_lock(hw->exit.rip);
		return 0;
	case EXIT_REASON_CPUID:
		return vmx_cpuid(vcpu);
	case EXIT_REASON_MSR_WRITE:
		return vmx_wrmsr(vcpu);
	case EXIT_REASON_HLT:
		vcpu_count(vcpu, DUNE_COUNT_OTHER);
		vmx_skip(hw);
		return DUNE_EXIT_HLT;
	case EXIT_REASON_TRIPLE_FAULT:
		vcpu_count(vcpu, DUNE_COUNT_OTHER);
		return DUNE_EXIT_SHUTDOWN;
	case EXIT_REASON_VMCALL | VMX_REASON_OUTER_RING:
		return exit_answer(vcpu, ANSWER_UD, vmx_inject);
	default:
		return exit_answer(vcpu, vmx_intercept_answer(reason), vmx_inject);
	}
}

static noinline int trace_and_handle(struct dune_vcpu *vcpu)
{
	const struct vcpu_hw *hw = vcpu->hw;

	trace_dune_exit(hw->exit.reason & VMX_REASON_MASK, hw->exit.rip,
			vmx_exit_qualification(&hw->exit), vmx_exit_gpa(&hw->exit));
	if (hw->exit.reason == EXIT_REASON_VMCALL)
		return hypercall_handle(vcpu, hw->irq);
	return vmx_handle_other(vcpu);
}

/* Implements @handle_exit of struct vcpu_ops: the hot path (vcpu_ops.h). */
notrace int vmx_handle_exit(struct dune_vcpu *vcpu)
{
	const struct vcpu_hw *hw = vcpu->hw;

	if (trace_dune_exit_enabled())
		return trace_and_handle(vcpu);
	if (likely(hw->exit.reason == EXIT_REASON_VMCALL))
		return hypercall_handle(vcpu, hw->irq);
	return vmx_handle_other(vcpu);
}
