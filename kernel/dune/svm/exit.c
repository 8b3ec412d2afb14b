// SPDX-License-Identifier: GPL-2.0-only
/*
 * The handler of an SVM guest's exits: one switch. Forbidden instructions are answered from
 * the table in intercepts.c.
 */
#include <asm/cpufeature.h>
#include <asm/irq_vectors.h>
#include <asm/trap_pf.h>
#include <asm/trapnr.h>

#include "dune/hypercall.h"
#include "dune/svm/svm.h"
#include "dune/trace/trace.h"

/*
 * The guest continues after the instruction, which has @length bytes; newer processors
 * report its end. Inline for the hypercall: the compiler does not do so by itself.
 */
static __always_inline void svm_skip(struct vmcb *vmcb, unsigned int length)
{
	if (cpu_feature_enabled(X86_FEATURE_NRIPS) && vmcb->control.next_rip)
		vmcb->save.rip = vmcb->control.next_rip;
	else
		vmcb->save.rip += length;
	vmcb->control.int_state = 0;
}

/* Raises a hardware exception in the guest: the @inject of exit_answer(). */
static void svm_inject(struct vcpu_hw *hw, unsigned int vector, bool has_error)
{
	struct vmcb_control_area *control = &hw->vmcb->control;

	control->event_inj = vector | SVM_EVTINJ_TYPE_EXEPT | SVM_EVTINJ_VALID;
	if (has_error)
		control->event_inj |= SVM_EVTINJ_VALID_ERR;
	control->event_inj_err = 0;
}

/*
 * The exit came while an event was being delivered (APM 15.20): delivers the event
 * again at the next entry. Software interrupts, INT3 and INTO are repeated
 * by their instruction, to which RIP still points.
 */
static void svm_requeue_event(struct vcpu_hw *hw)
{
	struct vmcb_control_area *control = &hw->vmcb->control;
	u32 event = control->exit_int_info;
	u32 vector = event & SVM_EVTINJ_VEC_MASK;

	switch (event & SVM_EVTINJ_TYPE_MASK) {
	case SVM_EVTINJ_TYPE_EXEPT:
		if (vector == X86_TRAP_BP || vector == X86_TRAP_OF)
			return;
		if (vector < FIRST_EXTERNAL_VECTOR)
			break;
		/* QEMU's TCG calls every event an exception (docs/emulators.md). */
		event = vector | SVM_EVTINJ_TYPE_INTR | SVM_EVTINJ_VALID;
		fallthrough;
	case SVM_EVTINJ_TYPE_INTR:
		/* The virtual interrupt was not consumed: it comes by itself. */
		if (control->int_ctl & V_IRQ_MASK)
			return;
		break;
	default:
		return;
	}
	control->event_inj = event;
	control->event_inj_err = control->exit_int_info_err;
}

static __always_inline int svm_hypercall(struct dune_vcpu *vcpu)
{
	struct vmcb *vmcb = vcpu->hw->vmcb;

	if (unlikely(vmcb->save.cpl))
		return exit_answer(vcpu, ANSWER_UD, svm_inject);
	svm_skip(vmcb, VMMCALL_LENGTH);
	return hypercall_handle(vcpu, vmcb->control.int_ctl & V_IRQ_MASK);
}

/* Implements @raise_fault of struct vcpu_ops. */
bool svm_raise_fault(struct dune_vcpu *vcpu, u64 address, u32 error)
{
	struct vmcb *vmcb = vcpu->hw->vmcb;

	if (vmcb->control.exit_int_info & SVM_EXITINTINFO_VALID)
		return false;
	if (vmcb->save.cpl == 3)
		error |= X86_PF_USER;
	svm_inject(vcpu->hw, X86_TRAP_PF, true);
	vmcb->control.event_inj_err = error;
	vmcb->save.cr2 = address;
	vmcb->control.clean &= ~SVM_CLEAN_CR2;
	return true;
}

static int svm_fault(struct dune_vcpu *vcpu)
{
	const struct vmcb_control_area *control = &vcpu->hw->vmcb->control;
	u64 info = control->exit_info_1;
	u32 flags = 0;

	if (info & SVM_NPF_WRITE)
		flags |= DUNE_FAULT_WRITE;
	if (info & SVM_NPF_FETCH)
		flags |= DUNE_FAULT_EXEC;
	if (info & SVM_NPF_TABLE)
		flags |= DUNE_FAULT_TABLE;
	return fault_handle(vcpu, control->exit_info_2, flags);
}

/*
 * A guest runs with the host's DEBUGCTL, so traps that the host has enabled there also occur
 * in the guest: the trap of a bus lock in ring 3, which a cleared bit of DR6 reports.
 */
static void svm_debug(struct vcpu_hw *hw)
{
	struct vmcb *vmcb = hw->vmcb;
	u64 dr6 = vmcb->save.dr6;

	vmcb->save.dr6 = DR6_RESERVED;
	vmcb->control.clean &= ~SVM_CLEAN_DEBUG;
	if (!(dr6 & DR_BUS_LOCK)) {
		exit_bus_lock(vmcb->save.rip);
		if ((dr6 | DR_BUS_LOCK) == DR6_RESERVED)
			return;
	}
	svm_inject(hw, X86_TRAP_DB, false);
}

static noinline int svm_handle_other(struct dune_vcpu *vcpu)
{
	struct vcpu_hw *hw = vcpu->hw;
	struct vmcb_control_area *control = &hw->vmcb->control;
	u32 code = control->exit_code;

	/* After a refused entry the state is a new one, which has no event: svm_reset_state(). */
	if (unlikely(control->exit_int_info & SVM_EXITINTINFO_VALID) && code != (u32)SVM_EXIT_ERR)
		svm_requeue_event(hw);

	switch (code) {
	case SVM_EXIT_NPF:
		return svm_fault(vcpu);
	case SVM_EXIT_INTR:
	case SVM_EXIT_NMI:
	case SVM_EXIT_SMI:
	case SVM_EXIT_INIT:
	case SVM_EXIT_EXCP_BASE + X86_TRAP_MC:
		/*
		 * The host has taken it: an interrupt in run_enter(), an NMI, SMI or INIT
		 * at STGI, a machine check in finish_exit().
		 */
		vcpu_count(vcpu, DUNE_COUNT_INTERRUPT);
		return 0;
	case SVM_EXIT_EXCP_BASE + X86_TRAP_DB:
		vcpu_count(vcpu, DUNE_COUNT_OTHER);
		svm_debug(hw);
		return 0;
	case SVM_EXIT_ICEBP:
		vcpu_count(vcpu, DUNE_COUNT_OTHER);
		svm_skip(hw->vmcb, ICEBP_LENGTH);
		svm_inject(hw, X86_TRAP_DB, false);
		return 0;
	case SVM_EXIT_EXCP_BASE + X86_TRAP_AC:
		vcpu_count(vcpu, DUNE_COUNT_OTHER);
		svm_inject(hw, X86_TRAP_AC, true);
		return 0;
	case SVM_EXIT_HLT:
		vcpu_count(vcpu, DUNE_COUNT_OTHER);
		svm_skip(hw->vmcb, HLT_LENGTH);
		return DUNE_EXIT_HLT;
	case SVM_EXIT_MONITOR:
	case SVM_EXIT_MWAIT:
	case SVM_EXIT_MWAIT_COND:
		/*
		 * User mode may execute MONITORX and MWAITX, and the exit is the same as for
		 * MONITOR and MWAIT, which only ring 0 may. A wait may end at any time (APM
		 * vol. 3, MWAITX), so this one ends at once.
		 */
		vcpu_count(vcpu, DUNE_COUNT_OTHER);
		svm_skip(hw->vmcb, MONITOR_LENGTH);
		return 0;
	case SVM_EXIT_SHUTDOWN:
		vcpu_count(vcpu, DUNE_COUNT_OTHER);
		/* The state is undefined now (APM 15.14.3). */
		svm_fix_state(&hw->vmcb->save, hw->cr4);
		control->clean = 0;
		return DUNE_EXIT_SHUTDOWN;
	case (u32)SVM_EXIT_ERR:
		vcpu_count(vcpu, DUNE_COUNT_OTHER);
		return DUNE_EXIT_INVALID;
	default:
		return exit_answer(vcpu, svm_intercept_answer(code), svm_inject);
	}
}

static noinline int trace_and_handle(struct dune_vcpu *vcpu)
{
	const struct vmcb *vmcb = vcpu->hw->vmcb;

	trace_dune_exit(vmcb->control.exit_code, vmcb->save.rip,
			vmcb->control.exit_info_1, vmcb->control.exit_info_2);
	if (vmcb->control.exit_code == SVM_EXIT_VMMCALL)
		return svm_hypercall(vcpu);
	return svm_handle_other(vcpu);
}

/* Implements @handle_exit of struct vcpu_ops: the hot path (vcpu_ops.h). */
notrace int svm_handle_exit(struct dune_vcpu *vcpu)
{
	const struct vmcb *vmcb = vcpu->hw->vmcb;

	if (trace_dune_exit_enabled())
		return trace_and_handle(vcpu);
	if (likely(vmcb->control.exit_code == SVM_EXIT_VMMCALL))
		return svm_hypercall(vcpu);
	return svm_handle_other(vcpu);
}
