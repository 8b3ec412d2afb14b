// SPDX-License-Identifier: GPL-2.0-only
/*
 * The VT-x part of a vCPU: its VMCS, the way into the guest and back. The
 * world switch itself is vmx_switch.S; what follows an exit is in vmx_exit.c.
 * SDM is the Intel 64 and IA-32 Architectures Software Developer's Manual,
 * volume 3.
 *
 * The VMCS is touched only with interrupts off, here: everything that an
 * entry needs is collected in struct vcpu_hw (.pending) and written by
 * vmx_enter(), and everything that an exit tells is read by it. In between
 * the thread can be switched away from, and the VMCS of another vCPU, or of
 * another hypervisor, becomes the current one.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <asm/cpufeature.h>
#include <asm/debugreg.h>
#include <asm/msr.h>
#include <asm/nospec-branch.h>

#include "virt/compat.h"
#include "dune/dune.h"
#include "dune/guest_state.h"
#include "x86/msr.h"
#include "x86/registers.h"
#include "dune/vendor.h"
#include "dune/vmx/vmx.h"
#include "dune/vmx/kvm.h"
#include "x86/vmx/instructions.h"

static_assert(REGS_RAX == offsetof(struct dune_regs, rax));

void vmx_reset_state(struct vcpu_hw *hw)
{
	local_irq_disable();
	/* Only those that differ are put back: while it is known which. */
	if (hw->msrs_loaded)
		vmx_restore_msrs(hw);
	local_irq_enable();
	memset(&hw->state, 0, sizeof(hw->state));
	hw->state.tr.attributes = 0x8b;	/* as DUNE_SET_STATE demands */
	memset(hw->msrs, 0, sizeof(hw->msrs));
	hw->pending &= ~(VMX_PENDING_EVENT | VMX_PENDING_SKIP);
	hw->pending |= VMX_PENDING_STATE | VMX_PENDING_MSRS;
}

int vmx_create(struct dune_vcpu *vcpu)
{
	struct vcpu_hw *hw = kzalloc(sizeof(*hw), GFP_KERNEL_ACCOUNT);

	if (!hw)
		return -ENOMEM;
	hw->vmcs = (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
	if (!hw->vmcs) {
		kfree(hw);
		return -ENOMEM;
	}
	*(u32 *)hw->vmcs = vmx_revision;
	hw->vmcs_pa = __pa(hw->vmcs);
	hw->cpu = -1;
	hw->controls = vmx_controls.cpu;
	hw->cr4 = guest_cr4(vcpu->smap);
	hw->rflags = X86_EFLAGS_FIXED;
	hw->pending = VMX_PENDING_SETUP | VMX_PENDING_CONTROLS |
		      VMX_PENDING_REGS;
	vmx_reset_state(hw);
	vcpu->hw = hw;
	return 0;
}

static void deactivate(void *hw)
{
	vmx_deactivate(hw);
}

/* A CPU that goes off line has let go of it by itself. */
static void leave_cpu(struct vcpu_hw *hw)
{
	int cpu = READ_ONCE(hw->cpu);

	if (cpu >= 0)
		smp_call_function_single(cpu, deactivate, hw, true);
}

void vmx_leave_cpu(struct dune_vcpu *vcpu)
{
	leave_cpu(vcpu->hw);
}

void vmx_destroy(struct dune_vcpu *vcpu)
{
	leave_cpu(vcpu->hw);
	free_page((unsigned long)vcpu->hw->vmcs);
	kfree(vcpu->hw);
}

void vmx_set_root(struct dune_vcpu *vcpu, u64 root)
{
	vcpu->hw->eptp = root;
}

/*
 * KVM is loaded, and the VMCS is not active from before that: then virtual-
 * ization is still ours here, and KVM does nothing before it is told.
 */
static __always_inline bool is_beside_kvm(const struct vcpu_hw *hw)
{
	return static_branch_unlikely(&dune_beside_kvm) && hw->cpu < 0;
}

/* Interrupts off: makes the VMCS current, if need be by a loan. */
static bool take_vmcs(struct vcpu_hw *hw, bool *beside)
{
	*beside = is_beside_kvm(hw);
	if (*beside)
		return vmx_borrow(hw, false);
	vmx_activate(hw);
	return true;
}

/*
 * Interrupts are off on return, and the VMCS is current. Returns false where
 * virtualization is off on this CPU.
 */
static bool claim(struct vcpu_hw *hw, bool *beside)
{
	for (;;) {
		local_irq_disable();
		if (hw->cpu < 0 || hw->cpu == smp_processor_id())
			break;
		local_irq_enable();
		leave_cpu(hw);
	}
	if (!dune_cpu_enabled())
		return false;
	return take_vmcs(hw, beside);
}

static void get_outside_vmcs(const struct vcpu_hw *hw, struct dune_state *state)
{
	state->star = hw->msrs[VMX_MSR_STAR];
	state->lstar = hw->msrs[VMX_MSR_LSTAR];
	state->cstar = hw->msrs[VMX_MSR_CSTAR];
	state->sfmask = hw->msrs[VMX_MSR_SFMASK];
	state->kernel_gs_base = hw->kernel_gs_base;
	state->cr2 = hw->cr2;
}

void vmx_get_state(struct dune_vcpu *vcpu, struct dune_state *state)
{
	struct vcpu_hw *hw = vcpu->hw;
	bool beside;

	if (!(hw->pending & VMX_PENDING_STATE)) {
		if (claim(hw, &beside)) {
			vmx_read_state(state);
			if (beside)
				vmx_give_back(hw);
		}
		local_irq_enable();
	} else {
		*state = hw->state;
	}
	get_outside_vmcs(hw, state);
}

/*
 * The processor refuses an illegal state at the entry (DUNE_EXIT_INVALID).
 * What could reach beyond the guest is not in struct dune_state.
 */
void vmx_set_state(struct dune_vcpu *vcpu, const struct dune_state *state)
{
	struct vcpu_hw *hw = vcpu->hw;

	hw->state = *state;
	hw->msrs[VMX_MSR_STAR] = state->star;
	hw->msrs[VMX_MSR_LSTAR] = guest_canonical(state->lstar);
	hw->msrs[VMX_MSR_CSTAR] = guest_canonical(state->cstar);
	hw->msrs[VMX_MSR_SFMASK] = (u32)state->sfmask;
	hw->kernel_gs_base = guest_canonical(state->kernel_gs_base);
	hw->cr2 = state->cr2;
	hw->pending &= ~(VMX_PENDING_EVENT | VMX_PENDING_SKIP);
	hw->pending |= VMX_PENDING_STATE | VMX_PENDING_MSRS;
}

void vmx_filter(struct dune_vcpu *vcpu, bool notsc, bool nocpuid)
{
	struct vcpu_hw *hw = vcpu->hw;

	hw->controls &= ~CPU_BASED_RDTSC_EXITING;
	if (notsc)
		hw->controls |= CPU_BASED_RDTSC_EXITING;
	hw->pending |= VMX_PENDING_CONTROLS;
}

void vmx_load(struct dune_vcpu *vcpu)
{
	const struct dune_regs *regs = &vcpu->run->regs;
	struct vcpu_hw *hw = vcpu->hw;
	u64 rflags = guest_rflags(READ_ONCE(regs->rflags));
	u64 rip = READ_ONCE(regs->rip);

	/* A shadow of STI or MOV SS belongs to the instruction at RIP. */
	hw->keeps_shadow = !(hw->pending & VMX_PENDING_REGS) &&
			   rip == hw->rip && rflags == hw->rflags;
	/* Before they change: vmx_cpu_disable() reads them in an interrupt. */
	hw->pending |= VMX_PENDING_REGS;
	barrier();
	hw->rip = rip;
	hw->rsp = READ_ONCE(regs->rsp);
	hw->rflags = rflags;
	hw->irq = vcpu->irq;
	if (hw->irq || hw->controls & CPU_BASED_INTR_WINDOW_EXITING)
		hw->pending |= VMX_PENDING_IRQ;
}

void vmx_store(struct dune_vcpu *vcpu)
{
	const struct vcpu_hw *hw = vcpu->hw;
	struct dune_run *run = vcpu->run;

	run->regs.rip = hw->rip;
	run->regs.rsp = hw->rsp;
	run->regs.rflags = hw->rflags;
	if (!hw->irq)
		run->irq_vector = 0;
	run->hw_exit = hw->exit.reason;
	run->hw_info1 = hw->exit.qualification;
	run->hw_info2 = hw->exit.guest_physical;
}

/*
 * KVM has the branch predictor forget when another VMCS follows on a CPU, but
 * only another one of its own. A guest of ours runs in the same mode as KVM's
 * kernel, which other mitigations do not tell apart. Not beside a KVM without
 * a VMCS here.
 */
static void forget_predictions_beside_kvm(void)
{
	u64 current_vmcs;

	if (static_branch_unlikely(&dune_beside_kvm) &&
	    __read_cr4() & X86_CR4_VMXE && vmptrst(&current_vmcs) &&
	    current_vmcs != VMX_LOAN_NONE)
		indirect_branch_prediction_barrier();
}

void vmx_moved(struct dune_vcpu *vcpu, bool migrated)
{
	struct vcpu_hw *hw = vcpu->hw;

	forget_predictions_beside_kvm();
	hw->pending |= VMX_PENDING_HOST;
	if (migrated)
		hw->pending |= VMX_PENDING_CPU;
	/* Not if there was no other thread to switch to. */
	if (!hw->switched)
		vmx_host_save(hw);
	vmx_choose_msrs(hw);
}

/* The current VMCS is the vCPU's. */
void vmx_read_regs(struct vcpu_hw *hw)
{
	if (hw->pending & VMX_PENDING_REGS)
		return;
	hw->rip = vmcs_read(GUEST_RIP);
	hw->rsp = vmcs_read(GUEST_RSP);
	hw->rflags = vmcs_read(GUEST_RFLAGS);
}

/*
 * Later the VMCS may be active elsewhere. Where it is active nowhere, the
 * registers have been read already, but after an entry beside KVM.
 */
static void read_last_regs(struct vcpu_hw *hw)
{
	bool beside;

	if (hw->pending & VMX_PENDING_REGS)
		return;
	if (likely(hw->cpu >= 0)) {
		vmptrld(&hw->vmcs_pa);
		vmx_read_regs(hw);
		return;
	}
	if (!(hw->pending & VMX_PENDING_ACTIVATE))
		return;
	/* Gone with the CPU it was on, and KVM with it. */
	if (!is_beside_kvm(hw) && !dune_cpu_enabled())
		return;
	if (!take_vmcs(hw, &beside))
		return;
	vmx_read_regs(hw);
	if (beside)
		vmx_give_back(hw);
}

/* The registers that DUNE_RUN returns are read now. */
void vmx_put(struct dune_vcpu *vcpu)
{
	struct vcpu_hw *hw = vcpu->hw;

	if (hw->msrs_loaded)
		vmx_restore_msrs(hw);
	if (hw->switched) {
		vmx_host_restore(hw);
		read_last_regs(hw);
		forget_predictions_beside_kvm();
	}
	if (hw->pending & VMX_PENDING_SKIP) {
		hw->rip += hw->exit.instruction_length;
		hw->keeps_shadow = false;
		hw->pending &= ~VMX_PENDING_SKIP;
		hw->pending |= VMX_PENDING_REGS;
	}
}

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

/* Delivery ends the shadow of the instruction before. */
static void write_event(struct vcpu_hw *hw)
{
	vmcs_write(VM_ENTRY_INTR_INFO_FIELD, hw->event);
	vmcs_write(VM_ENTRY_EXCEPTION_ERROR_CODE, hw->event_error);
	vmcs_write(GUEST_INTERRUPTIBILITY_INFO, 0);
	vmcs_write(GUEST_PENDING_DBG_EXCEPTIONS, 0);
}

/* Before offer_interrupt(): what is delivered now, and whether anything is. */
static void write_pending(struct vcpu_hw *hw)
{
	u32 pending = hw->pending;

	if (pending & VMX_PENDING_SETUP)
		vmx_write_setup(hw);
	if (pending & VMX_PENDING_CONTROLS)
		vmcs_write(CPU_BASED_VM_EXEC_CONTROL, hw->controls);
	if (pending & VMX_PENDING_CPU) {
		vmx_host_write_cpu(&hw->host);
		hw->vpid_generation = 0;
		hw->host_rsp = 0;
	}
	if (pending & VMX_PENDING_HOST) {
		vmx_host_write(&hw->host);
		if (vmx_take_vpid(hw))
			vmcs_write(VIRTUAL_PROCESSOR_ID, hw->vpid);
	}
	if (pending & VMX_PENDING_MSRS)
		vmx_write_lists(hw);
	if (pending & VMX_PENDING_STATE)
		vmx_write_state(&hw->state);
	if (pending & VMX_PENDING_REGS)
		write_regs(hw);
	if (pending & VMX_PENDING_SKIP) {
		vmcs_write(GUEST_RIP, vmcs_read(GUEST_RIP) +
				      hw->exit.instruction_length);
		vmcs_write(GUEST_INTERRUPTIBILITY_INFO, 0);
	}
	if (pending & VMX_PENDING_EVENT)
		write_event(hw);
	if (pending & VMX_PENDING_FLUSH)
		vmx_flush(hw);
}

static bool takes_interrupts(void)
{
	return vmcs_read(GUEST_RFLAGS) & X86_EFLAGS_IF &&
	       !(vmcs_read(GUEST_INTERRUPTIBILITY_INFO) &
		 (GUEST_INTR_STATE_STI | GUEST_INTR_STATE_MOV_SS));
}

/* The guest leaves as soon as it can take an interrupt, or does not. */
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
 * An interrupt waits for the guest: it gets it now, or as soon as it can take
 * one. An event that is being delivered goes first (SDM 27.6). Or it waited,
 * and has been withdrawn.
 */
static void offer_interrupt(struct vcpu_hw *hw, bool event)
{
	if (hw->irq && !event && takes_interrupts()) {
		vmcs_write(VM_ENTRY_INTR_INFO_FIELD, hw->irq |
			   INTR_TYPE_EXT_INTR | INTR_INFO_VALID_MASK);
		hw->irq = 0;
	}
	set_window(hw, hw->irq);
}

/* The current VMCS: all that an entry needs and most do not. */
static void write_all(struct vcpu_hw *hw)
{
	u32 pending = hw->pending;

	write_pending(hw);
	hw->pending = 0;
	if (pending & VMX_PENDING_IRQ) {
		offer_interrupt(hw, pending & VMX_PENDING_EVENT);
		/* Again before the next entry, until there is none. */
		if (hw->controls & CPU_BASED_INTR_WINDOW_EXITING)
			hw->pending = VMX_PENDING_IRQ;
	}
}

static noinline void prepare(struct vcpu_hw *hw)
{
	if (hw->pending & (VMX_PENDING_HOST | VMX_PENDING_ACTIVATE))
		vmx_activate(hw);
	write_all(hw);
}

static void read_exit(struct vcpu_hw *hw)
{
	struct vmx_exit *exit = &hw->exit;

	exit->qualification = vmcs_read(EXIT_QUALIFICATION);
	exit->guest_physical = vmcs_read(GUEST_PHYSICAL_ADDRESS);
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
 * A hypercall is carried out by whoever called vmx_enter(); the guest will go
 * on behind it. Not from ring 3, where the instruction does not exist.
 */
static __always_inline void read_hypercall(struct vcpu_hw *hw)
{
	if (unlikely(vmcs_read(GUEST_SS_AR_BYTES) & 3 << VMX_AR_DPL_SHIFT)) {
		hw->exit.reason = EXIT_REASON_VMFUNC;	/* also #UD */
		hw->exit.vectoring = 0;
		return;
	}
	hw->exit.rip = vmcs_read(GUEST_RIP);
	vmcs_write(GUEST_RIP, hw->exit.rip + 3);
	if (unlikely(vmcs_read(GUEST_INTERRUPTIBILITY_INFO)))
		vmcs_write(GUEST_INTERRUPTIBILITY_INFO, 0);
}

/* The exit took what was the host's: hand it on. */
static bool host_event(const struct vmx_exit *exit)
{
	switch (exit->reason) {
	case EXIT_REASON_EXCEPTION_NMI:
		/* NMIs are blocked until the handler's IRET (SDM 28.5.3). */
		if ((exit->interruption & INTR_INFO_INTR_TYPE_MASK) ==
		    INTR_TYPE_NMI_INTR)
			asm volatile("int $2");
		else if ((exit->interruption & INTR_INFO_VECTOR_MASK) == 18)
			dune_machine_check();
		return false;
	case VMX_REASON_MCE_AT_ENTRY:
		dune_machine_check();
		return false;
	case EXIT_REASON_EXTERNAL_INTERRUPT:
	case EXIT_REASON_PREEMPTION_TIMER:
		return true;
	default:
		return false;
	}
}

static noinline bool entry_failed(struct vcpu_hw *hw, u64 error)
{
	hw->exit.reason = VMX_EXIT_REASONS_FAILED_VMENTRY;
	hw->exit.qualification = error;
	return false;
}

/*
 * How an entry comes by the CPU. Each has a copy of enter() that knows it: this
 * is the hot path, and asks nothing that is known.
 */
enum way {
	OWN,	/* virtualization is ours */
	OFF,	/* beside KVM, which has it off */
	ON,	/* beside KVM, which has it on */
	LOAN,	/* beside KVM: vmx_borrow() has been */
};

static bool enter_otherwise(struct dune_vcpu *vcpu);

static __always_inline void leave(struct vcpu_hw *hw, enum way way)
{
	/* Lest addresses in it live in registers of their own, saved for that. */
	OPTIMIZER_HIDE_VAR(hw);
	switch (way) {
	case OWN:
		break;
	case OFF:
		vmx_let_go(hw);
		vmx_turn_off();
		break;
	case ON:
		vmx_let_go(hw);
		if (hw->loan != VMX_LOAN_NONE)
			vmptrld(&hw->loan);
		break;
	case LOAN:
		vmx_give_back(hw);
	}
}

/*
 * Two calls are between vmx_switch() and the run loop, see the return stack
 * buffer there. @found: CR4.
 */
static __always_inline bool enter(struct dune_vcpu *vcpu, const enum way way,
				  u64 found)
{
	struct vcpu_hw *hw = vcpu->hw;
	u64 cr3, cr4;
	u32 ldt;

	switch (way) {
	case OWN:
		if (unlikely(hw->pending))
			prepare(hw);
		break;
	case OFF:
		if (unlikely(!vmx_turn_on(found)))
			return entry_failed(hw, 0);
		vmptrld(&hw->vmcs_pa);
		break;
	case ON:
		if (unlikely(!vmptrst(&hw->loan)))
			return enter_otherwise(vcpu);
		vmptrld(&hw->vmcs_pa);
		break;
	case LOAN:
		break;
	}
	cr3 = __native_read_cr3();
	cr4 = __read_cr4();
	if (unlikely(cr3 != hw->host.cr3))
		vmcs_write(HOST_CR3, hw->host.cr3 = cr3);
	if (unlikely(cr4 != hw->host.cr4))
		vmcs_write(HOST_CR4, hw->host.cr4 = cr4);
	/*
	 * The exit makes LDTR null. An interrupt since the last exit may have
	 * loaded it, for another thread's modify_ldt(). Read to a register: with
	 * a variable in memory the call above is no jump (return_buffer.h).
	 */
	asm volatile("sldt %0" : "=r" (ldt));
	if (unlikely(ldt))
		hw->host.ldt = ldt;
	if (unlikely(hw->cr2 != native_read_cr2()))
		native_write_cr2(hw->cr2);
	/* Interrupts change it, on behalf of perf. */
	hw->host.debugctl = msr_read(MSR_IA32_DEBUGCTLMSR);
	if (static_branch_unlikely(&vmx_flushes_l1d))
		wrmsrq(MSR_IA32_FLUSH_CMD, L1D_FLUSH);

	/* Beside KVM it is cleared after each exit. */
	if (unlikely(vmx_switch(&vcpu->run->regs, way == OWN && hw->launched,
				&hw->host_rsp))) {
		entry_failed(hw, vmcs_read(VM_INSTRUCTION_ERROR));
		leave(hw, way);
		return false;
	}
	/* It is not in the VMCS, and the host's next page fault changes it. */
	hw->cr2 = native_read_cr2();
	/* The exit cleared both (SDM 28.5.1). */
	if (unlikely(hw_breakpoint_active()))
		set_debugreg(__this_cpu_read(cpu_dr7), 7);
	if (unlikely(hw->host.debugctl))
		wrmsrq(MSR_IA32_DEBUGCTLMSR, hw->host.debugctl);

	/* The rest tells more of some (SDM 25.9.1), as of a guest in an enclave. */
	hw->exit.reason = vmcs_read(VM_EXIT_REASON) & VMX_REASON_MASK;
	if (way == OWN && unlikely(!hw->launched))
		hw->launched = !(hw->exit.reason &
				 VMX_EXIT_REASONS_FAILED_VMENTRY);
	if (likely(hw->exit.reason == EXIT_REASON_VMCALL)) {
		read_hypercall(hw);
		leave(hw, way);
		return false;
	}
	hw->exit.rip = vmcs_read(GUEST_RIP);
	read_exit(hw);
	leave(hw, way);
	return host_event(&hw->exit);
}

/* Beside KVM, with something to write, or the CPU in a rare state. */
static noinline bool enter_otherwise(struct dune_vcpu *vcpu)
{
	struct vcpu_hw *hw = vcpu->hw;

	if (!is_beside_kvm(hw))
		return enter(vcpu, OWN, 0);
	if (!vmx_borrow(hw, hw->pending & VMX_PENDING_SETUP))
		return entry_failed(hw, 0);
	write_all(hw);
	return enter(vcpu, LOAN, 0);
}

static noinline notrace bool enter_with_kvm_on(struct dune_vcpu *vcpu)
{
	return enter(vcpu, ON, 0);
}

static noinline notrace bool enter_with_kvm_off(struct dune_vcpu *vcpu, u64 cr4)
{
	return enter(vcpu, OFF, cr4);
}

static noinline notrace bool enter_beside_kvm(struct dune_vcpu *vcpu,
					      bool flush)
{
	u64 cr4;

	if (unlikely(flush))
		vcpu->hw->pending |= VMX_PENDING_FLUSH;
	/* Nothing to write. A VMCS that is active has nothing pending at all. */
	if (unlikely(vcpu->hw->pending != VMX_PENDING_ACTIVATE))
		return enter_otherwise(vcpu);
	cr4 = __read_cr4();
	if (cr4 & X86_CR4_VMXE)
		return enter_with_kvm_on(vcpu);
	return enter_with_kvm_off(vcpu, cr4);
}

static noinline notrace bool enter_own(struct dune_vcpu *vcpu, bool flush)
{
	if (unlikely(flush))
		vcpu->hw->pending |= VMX_PENDING_FLUSH;
	return enter(vcpu, OWN, 0);
}

/* A function of its own for each, since registers are saved first of all. */
notrace bool vmx_enter(struct dune_vcpu *vcpu, bool flush)
{
	if (static_branch_unlikely(&dune_beside_kvm))
		return enter_beside_kvm(vcpu, flush);
	return enter_own(vcpu, flush);
}
