// SPDX-License-Identifier: GPL-2.0-only
/*
 * The guest's state: in struct dune_state and struct dune_regs for user mode, in struct
 * vcpu_hw between runs, and in the VMCS. (SDM 25.4, and 27.3 for what an entry demands.)
 */
#include <linux/errno.h>
#include <linux/irqflags.h>
#include <linux/kernel.h>
#include <linux/lockdep.h>
#include <linux/string.h>

#include "dune/vmx/vmx.h"
#include "x86/msr.h"

/* The fields of a segment register in the VMCS, and its offset in struct dune_state. */
#define SEGMENT(name, member) { \
	GUEST_##name##_SELECTOR, GUEST_##name##_BASE, GUEST_##name##_LIMIT, \
	GUEST_##name##_AR_BYTES, offsetof(struct dune_state, member) }

static const struct {
	u16 selector, base, limit, rights, offset;
} segments[] = {
	SEGMENT(CS, cs), SEGMENT(SS, ss), SEGMENT(DS, ds), SEGMENT(ES, es),
	SEGMENT(FS, fs), SEGMENT(GS, gs), SEGMENT(TR, tr), SEGMENT(LDTR, ldtr),
};

/*
 * Access rights in the VMCS are those of a descriptor, with the upper four bits moved
 * up and a bit for a register that is not usable (SDM 25.4.1).
 */
static u32 rights(u16 attributes)
{
	if (!(attributes & SEGMENT_P))
		return VMX_AR_UNUSABLE_MASK | (attributes & SEGMENT_DPL);
	return (attributes & 0xff) | (attributes & 0xf00) << 4;
}

static void write_segment(int i, const struct dune_segment *segment, u32 rights)
{
	vmcs_write(segments[i].selector, segment->selector);
	vmcs_write(segments[i].base, guest_canonical(segment->base));
	vmcs_write(segments[i].limit, segment->limit);
	vmcs_write(segments[i].rights, rights);
}

/* Writes @state into the current VMCS. Interrupts are off. */
void vmx_write_state(const struct dune_state *state)
{
	int i;

	lockdep_assert_irqs_disabled();
	for (i = 0; i < ARRAY_SIZE(segments); i++) {
		const struct dune_segment *segment = (const void *)state + segments[i].offset;
		u32 ar = rights(segment->attributes);

		/* The privilege level is that of SS. */
		if (segments[i].rights == GUEST_SS_AR_BYTES)
			ar = (ar & ~SEGMENT_DPL) | state->cpl << VMX_AR_DPL_SHIFT;
		write_segment(i, segment, ar);
	}
	vmcs_write(GUEST_GDTR_BASE, guest_canonical(state->gdtr.base));
	vmcs_write(GUEST_GDTR_LIMIT, state->gdtr.limit & 0xffff);
	vmcs_write(GUEST_IDTR_BASE, guest_canonical(state->idtr.base));
	vmcs_write(GUEST_IDTR_LIMIT, state->idtr.limit & 0xffff);
	vmcs_write(GUEST_CR3, state->cr3);
	vmcs_write(GUEST_SYSENTER_CS, (u32)state->sysenter_cs);
	vmcs_write(GUEST_SYSENTER_ESP, guest_canonical(state->sysenter_esp));
	vmcs_write(GUEST_SYSENTER_EIP, guest_canonical(state->sysenter_eip));
	vmcs_write(GUEST_INTERRUPTIBILITY_INFO, 0);
	vmcs_write(GUEST_PENDING_DBG_EXCEPTIONS, 0);
	vmcs_write(VM_ENTRY_INTR_INFO_FIELD, 0);
}

static void read_segment(int i, struct dune_segment *segment)
{
	u32 ar = vmcs_read(segments[i].rights);

	segment->selector = vmcs_read(segments[i].selector);
	segment->base = vmcs_read(segments[i].base);
	segment->limit = vmcs_read(segments[i].limit);
	segment->attributes = (ar & 0xff) | (ar >> 4 & 0xf00);
	if (ar & VMX_AR_UNUSABLE_MASK)
		segment->attributes = 0;
}

/* Reads the state from the current VMCS, which has neither CR2 nor the system-call MSRs. */
static void read_state(struct dune_state *state)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(segments); i++)
		read_segment(i, (void *)state + segments[i].offset);
	state->cpl = VMX_AR_DPL(vmcs_read(GUEST_SS_AR_BYTES));
	state->gdtr.base = vmcs_read(GUEST_GDTR_BASE);
	state->gdtr.limit = vmcs_read(GUEST_GDTR_LIMIT);
	state->idtr.base = vmcs_read(GUEST_IDTR_BASE);
	state->idtr.limit = vmcs_read(GUEST_IDTR_LIMIT);
	state->cr3 = vmcs_read(GUEST_CR3);
	state->sysenter_cs = vmcs_read(GUEST_SYSENTER_CS);
	state->sysenter_esp = vmcs_read(GUEST_SYSENTER_ESP);
	state->sysenter_eip = vmcs_read(GUEST_SYSENTER_EIP);
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

/* Implements @get_state of struct vcpu_ops. */
int vmx_get_state(struct dune_vcpu *vcpu, struct dune_state *state)
{
	struct vcpu_hw *hw = vcpu->hw;
	enum vmx_current how;

	if (hw->pending & VMX_PENDING_STATE) {
		*state = hw->state;
	} else {
		if (!vmx_make_current(hw, &how))
			return -EAGAIN;
		read_state(state);
		vmx_release_current(hw, how);
	}
	get_outside_vmcs(hw, state);
	return 0;
}

/*
 * Implements @set_state of struct vcpu_ops. Nothing needs checking here. The processor refuses an
 * illegal state at the entry (DUNE_EXIT_INVALID). State that could reach beyond the guest is not
 * in struct dune_state.
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
	hw->pending &= ~(VMX_PENDING_EVENT | VMX_PENDING_RING | VMX_PENDING_SKIP);
	hw->pending |= VMX_PENDING_STATE | VMX_PENDING_MSRS;
}

/* Gives the vCPU the state of a new one; its registers stay. Called in process context. */
void vmx_reset_state(struct vcpu_hw *hw)
{
	local_irq_disable();
	/* Restores only the MSRs that differ, so now, while the guest's values are known. */
	if (hw->msrs_loaded)
		vmx_restore_msrs(hw);
	/* Until vmx_vcpu_put() the CPU has this one, too, which is then read from there. */
	hw->kernel_gs_base = 0;
	if (hw->switched)
		msr_write(MSR_KERNEL_GS_BASE, 0);
	local_irq_enable();
	hw->cr2 = 0;
	memset(&hw->state, 0, sizeof(hw->state));
	hw->state.tr.attributes = BUSY_TSS;
	memset(hw->msrs, 0, sizeof(hw->msrs));
	hw->pending &= ~(VMX_PENDING_EVENT | VMX_PENDING_RING | VMX_PENDING_SKIP);
	hw->pending |= VMX_PENDING_STATE | VMX_PENDING_MSRS;
}

/* Implements @load_regs of struct vcpu_ops. */
void vmx_load_regs(struct dune_vcpu *vcpu)
{
	const struct dune_regs *regs = &vcpu->run->regs;
	struct vcpu_hw *hw = vcpu->hw;
	u64 rflags = guest_rflags(READ_ONCE(regs->rflags));
	u64 rip = READ_ONCE(regs->rip);

	/* The length of an instruction is added to the RIP of its exit only. */
	WARN_ON_ONCE(hw->pending & VMX_PENDING_SKIP);
	/* A shadow of STI or MOV SS belongs to the instruction at RIP. */
	hw->keeps_shadow = !(hw->pending & VMX_PENDING_REGS) &&
			   rip == hw->rip && rflags == hw->rflags;
	/*
	 * This precedes the change of the registers, which vmx_host_cpu_off() reads in an
	 * interrupt.
	 */
	hw->pending |= VMX_PENDING_REGS;
	barrier();
	hw->rip = rip;
	hw->rsp = READ_ONCE(regs->rsp);
	hw->rflags = rflags;
	hw->irq = vcpu->irq;
	if (hw->irq || hw->controls & CPU_BASED_INTR_WINDOW_EXITING)
		hw->pending |= VMX_PENDING_IRQ;
}

/* Implements @store_regs of struct vcpu_ops. */
void vmx_store_regs(struct dune_vcpu *vcpu)
{
	struct vcpu_hw *hw = vcpu->hw;
	struct dune_run *run = vcpu->run;

	if (unlikely(hw->pending & VMX_PENDING_UNREAD))
		vmx_wait_for_regs(hw);
	run->regs.rip = hw->rip;
	run->regs.rsp = hw->rsp;
	run->regs.rflags = hw->rflags;
	if (!hw->irq)
		run->irq_vector = 0;
	run->hw_exit = hw->exit.reason & VMX_REASON_MASK;
	run->hw_info1 = vmx_exit_qualification(&hw->exit);
	run->hw_info2 = vmx_exit_gpa(&hw->exit);
}
