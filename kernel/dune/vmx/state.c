// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is in our VMCS: fields that never change, and the guest's state as struct
 * dune_state has it. All functions act on the current VMCS, interrupts off. (SDM
 * 25.4 and 25.5, and 27.2 and 27.3 for what an entry demands.)
 */
#include <linux/io.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <asm/segment.h>
#include <asm/special_insns.h>
#include <asm/trapnr.h>

#include "dune/vmx/vmx.h"

/* The fields of a segment register, and its place in struct dune_state. */
#define SEGMENT(name, member) { \
	GUEST_##name##_SELECTOR, GUEST_##name##_BASE, GUEST_##name##_LIMIT, \
	GUEST_##name##_AR_BYTES, offsetof(struct dune_state, member) }

static const struct {
	u16 selector, base, limit, rights, offset;
} segments[] = {
	SEGMENT(CS, cs), SEGMENT(SS, ss), SEGMENT(DS, ds), SEGMENT(ES, es),
	SEGMENT(FS, fs), SEGMENT(GS, gs), SEGMENT(TR, tr), SEGMENT(LDTR, ldtr),
};

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

	for (i = 0; i < ARRAY_SIZE(zeroes); i++)
		vmcs_write(zeroes[i], 0);
	vmcs_write(PIN_BASED_VM_EXEC_CONTROL, vmx_controls.pin);
	if (vmx_controls.pin & PIN_BASED_VMX_PREEMPTION_TIMER)
		vmcs_write(VMX_PREEMPTION_TIMER_VALUE, vmx_controls.timer);
	vmcs_write(SECONDARY_VM_EXEC_CONTROL, vmx_controls.cpu2);
	vmcs_write(VM_EXIT_CONTROLS, vmx_controls.exit);
	vmcs_write(VM_ENTRY_CONTROLS, vmx_controls.entry);
	vmcs_write(MSR_BITMAP, vmx_msr_bitmap);
	vmcs_write(EPT_POINTER, hw->eptp);
	vmcs_write(VMCS_LINK_POINTER, ~0ULL);
	if (vmx_controls.cpu2 & SECONDARY_EXEC_ENCLS_EXITING)
		vmcs_write(ENCLS_EXITING_BITMAP, ~0ULL);
	/* One directory for each half of the PASIDs; a page of zeroes has no entry. */
	if (vmx_controls.cpu2 & SECONDARY_EXEC_PASID_TRANSLATION) {
		vmcs_write(LOW_PASID_DIRECTORY, page_to_phys(ZERO_PAGE(0)));
		vmcs_write(HIGH_PASID_DIRECTORY, page_to_phys(ZERO_PAGE(0)));
	}

	/*
	 * A machine check is the host's. Delivery of #DB and #AC can raise them again
	 * without end, inside one instruction that no interrupt ends
	 * (CVE-2015-5307, -8104). The handler injects them one at a time, so that each
	 * is an instruction boundary.
	 */
	vmcs_write(EXCEPTION_BITMAP, BIT(X86_TRAP_DB) | BIT(X86_TRAP_AC) |
				     BIT(X86_TRAP_MC));
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

void vmx_write_state(const struct dune_state *state)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(segments); i++) {
		const struct dune_segment *segment =
			(const void *)state + segments[i].offset;
		u32 ar = rights(segment->attributes);

		/* The privilege level is that of SS. */
		if (segments[i].rights == GUEST_SS_AR_BYTES)
			ar = (ar & ~SEGMENT_DPL) |
			     state->cpl << VMX_AR_DPL_SHIFT;
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

/* All but what is not in the VMCS: CR2 and the system-call MSRs. */
void vmx_read_state(struct dune_state *state)
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
