// SPDX-License-Identifier: GPL-2.0-only
/*
 * The guest's state in a VMCB, and how user mode reads and writes it.
 */
#include <linux/string.h>

#include "dune/svm/svm.h"

/* Each of the eight memory types is write-back. */
#define PAT_ALL_WRITE_BACK	0x0606060606060606ULL

/* Sets the part of the guest's state that the kernel decides. */
void svm_fix_state(struct vmcb_save_area *save, u64 cr4)
{
	save->cr0 = DUNE_GUEST_CR0;
	save->cr4 = cr4;
	save->efer = SVM_GUEST_EFER;
	save->dr6 = DR6_RESERVED;
	save->dr7 = DR7_FIXED_1;
	/* Memory types are left to the kernel's page table. */
	save->g_pat = PAT_ALL_WRITE_BACK;
}

/* Gives @vmcb the state of a new vCPU, and marks all of it as changed. */
void svm_reset_state(struct vmcb *vmcb, u64 cr4)
{
	memset(&vmcb->save, 0, sizeof(vmcb->save));
	svm_fix_state(&vmcb->save, cr4);
	vmcb->save.rflags = X86_EFLAGS_FIXED;
	vmcb->save.tr.attrib = BUSY_TSS;
	vmcb->control.event_inj = 0;
	vmcb->control.int_state = 0;
	vmcb->control.clean = 0;
}

static void get_segment(struct dune_segment *to, const struct vmcb_seg *from)
{
	to->selector = from->selector;
	to->attributes = from->attrib;
	to->limit = from->limit;
	to->base = from->base;
}

static void set_segment(struct vmcb_seg *to, const struct dune_segment *from)
{
	to->selector = from->selector;
	to->attrib = from->attributes & 0xfff;
	to->limit = from->limit;
	to->base = from->base;
}

/* Implements @get_state of struct vcpu_ops. */
int svm_get_state(struct dune_vcpu *vcpu, struct dune_state *state)
{
	const struct vmcb_save_area *save = &vcpu->hw->vmcb->save;

	state->cpl = save->cpl;
	state->cr2 = save->cr2;
	state->cr3 = save->cr3;
	get_segment(&state->cs, &save->cs);
	get_segment(&state->ss, &save->ss);
	get_segment(&state->ds, &save->ds);
	get_segment(&state->es, &save->es);
	get_segment(&state->fs, &save->fs);
	get_segment(&state->gs, &save->gs);
	get_segment(&state->tr, &save->tr);
	get_segment(&state->ldtr, &save->ldtr);
	get_segment(&state->gdtr, &save->gdtr);
	get_segment(&state->idtr, &save->idtr);
	state->star = save->star;
	state->lstar = save->lstar;
	state->cstar = save->cstar;
	state->sfmask = save->sfmask;
	state->kernel_gs_base = save->kernel_gs_base;
	state->sysenter_cs = save->sysenter_cs;
	state->sysenter_esp = save->sysenter_esp;
	state->sysenter_eip = save->sysenter_eip;
	return 0;
}

/*
 * Implements @set_state of struct vcpu_ops. Nothing needs checking here. The processor refuses an
 * illegal state at VMRUN (DUNE_EXIT_INVALID) and makes bases canonical (APM 15.5.1). State that
 * could reach beyond the guest (CR0, CR4, EFER, all of the control area) is not in struct
 * dune_state.
 */
void svm_set_state(struct dune_vcpu *vcpu, const struct dune_state *state)
{
	struct vmcb *vmcb = vcpu->hw->vmcb;
	struct vmcb_save_area *save = &vmcb->save;

	save->cpl = state->cpl;
	save->cr2 = state->cr2;
	save->cr3 = state->cr3;
	set_segment(&save->cs, &state->cs);
	set_segment(&save->ss, &state->ss);
	set_segment(&save->ds, &state->ds);
	set_segment(&save->es, &state->es);
	set_segment(&save->fs, &state->fs);
	set_segment(&save->gs, &state->gs);
	set_segment(&save->tr, &state->tr);
	set_segment(&save->ldtr, &state->ldtr);
	set_segment(&save->gdtr, &state->gdtr);
	set_segment(&save->idtr, &state->idtr);
	save->star = state->star;
	save->lstar = state->lstar;
	save->cstar = state->cstar;
	save->sfmask = state->sfmask;
	save->kernel_gs_base = state->kernel_gs_base;
	save->sysenter_cs = state->sysenter_cs;
	save->sysenter_esp = state->sysenter_esp;
	save->sysenter_eip = state->sysenter_eip;
	vmcb->control.event_inj = 0;
	vmcb->control.int_state = 0;
	vmcb->control.clean = 0;
}

/* Implements @load_regs of struct vcpu_ops. */
void svm_load_regs(struct dune_vcpu *vcpu)
{
	struct vmcb *vmcb = vcpu->hw->vmcb;
	const struct dune_regs *regs = &vcpu->run->regs;
	u64 rip = READ_ONCE(regs->rip);

	/* A shadow of STI or MOV SS belongs to the instruction at RIP. */
	if (rip != vmcb->save.rip)
		vmcb->control.int_state = 0;
	vmcb->save.rip = rip;
	vmcb->save.rsp = READ_ONCE(regs->rsp);
	vmcb->save.rflags = guest_rflags(READ_ONCE(regs->rflags));
	/*
	 * The host's interrupts end the guest whatever its RFLAGS.IF is. The field is
	 * written as a whole, since TCG changes other bits here when it refuses a state
	 * (docs/emulators.md).
	 * The virtual interrupt waits for the guest's RFLAGS.IF by itself (APM 15.21.4);
	 * it ignores V_TPR, so its priority is above any.
	 */
	vmcb->control.int_ctl &= V_TPR_MASK;
	vmcb->control.int_ctl |= V_INTR_MASKING_MASK;
	if (vcpu->irq) {
		vmcb->control.int_ctl |= V_IRQ_MASK | V_INTR_PRIO_MASK | V_IGN_TPR_MASK;
		vmcb->control.int_vector = vcpu->irq;
	}
}

/*
 * Implements @store_regs of struct vcpu_ops. A state that was refused leaves the registers
 * unchanged.
 */
void svm_store_regs(struct dune_vcpu *vcpu)
{
	const struct vmcb *vmcb = vcpu->hw->vmcb;
	struct dune_run *run = vcpu->run;

	if (likely((u32)vmcb->control.exit_code != (u32)SVM_EXIT_ERR)) {
		run->regs.rip = vmcb->save.rip;
		run->regs.rsp = vmcb->save.rsp;
		run->regs.rflags = vmcb->save.rflags;
	}
	if (!(vmcb->control.int_ctl & V_IRQ_MASK))
		run->irq_vector = 0;
	run->hw_exit = vmcb->control.exit_code;
	run->hw_info1 = vmcb->control.exit_info_1;
	run->hw_info2 = vmcb->control.exit_info_2;
}
