/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the VT-x files share: vmx.c (the machine), vmx_controls.c (what the
 * guest may not do), vmx_vcpu.c (VMCS and state), vmx_host.c (what an exit
 * does not restore), vmx_kvm.h (beside KVM), vmx_exit.c (why the guest was left) and vmx_switch.S
 * (the world switch). SDM is the Intel 64 and IA-32 Architectures Software
 * Developer's Manual, volume 3.
 */
#ifndef DUNE_VMX_H
#define DUNE_VMX_H

#include <linux/jump_label.h>
#include <linux/list.h>
#include <linux/static_call_types.h>
#include <asm/cpu.h>
#include <asm/desc_defs.h>
#include <asm/msr-index.h>
#include <asm/processor-flags.h>
#include <asm/vmx.h>

#include "dune/dune.h"

/* The system-call MSRs of the guest; they are not in the VMCS. */
enum vmx_msr {
	VMX_MSR_STAR,
	VMX_MSR_LSTAR,
	VMX_MSR_CSTAR,
	VMX_MSR_SFMASK,
	VMX_MSRS
};

/* What the next entry has to write into the VMCS first. */
#define VMX_PENDING_SETUP	BIT(0)	/* all fields that never change */
#define VMX_PENDING_CPU		BIT(1)	/* host fields of this CPU */
#define VMX_PENDING_HOST	BIT(2)	/* host fields of this thread */
#define VMX_PENDING_CONTROLS	BIT(3)	/* vcpu_hw.controls */
#define VMX_PENDING_STATE	BIT(4)	/* vcpu_hw.state */
#define VMX_PENDING_REGS	BIT(5)	/* vcpu_hw.rip, rsp, rflags */
#define VMX_PENDING_SKIP	BIT(6)	/* RIP: behind the instruction */
#define VMX_PENDING_EVENT	BIT(7)	/* vcpu_hw.event */
#define VMX_PENDING_IRQ		BIT(8)	/* vcpu_hw.irq, or the window for it */
#define VMX_PENDING_FLUSH	BIT(9)	/* what the TLB knows of the EPT */
#define VMX_PENDING_MSRS	BIT(10)	/* vcpu_hw.lists */
/*
 * The VMCS is active nowhere since an entry beside KVM, and holds registers
 * that nobody has read. Nothing to write for the next entry beside KVM.
 */
#define VMX_PENDING_ACTIVATE	BIT(11)

/* Why the guest was left, read while the VMCS was current. */
struct vmx_exit {
	u64 qualification;
	u64 guest_physical;
	u64 rip;
	u32 reason;
	u32 interruption;
	u32 vectoring;
	u32 vectoring_error;
	u32 instruction_length;
	bool checks_alignment;	/* of an exception: ring 3, with RFLAGS.AC */
};

/* An exit's reason, and that the entry failed; that has one cause of its own. */
#define VMX_REASON_MASK		(VMX_EXIT_REASONS_FAILED_VMENTRY | 0xffff)
#define VMX_REASON_MCE_AT_ENTRY	(VMX_EXIT_REASONS_FAILED_VMENTRY | \
				 EXIT_REASON_MCE_DURING_VMENTRY)

/* What an exit does not give back to the host, SDM 28.5. */
struct vmx_host {
	u64 cr3;
	u64 cr4;
	u64 debugctl;
	u64 fs_base;
	u64 kernel_gs_base;
	struct desc_ptr idt;
	u16 ds, es, fs, gs, ldt;
};

/**
 * struct vcpu_hw - the VT-x part of a vCPU
 * @vmcs:	one page; the processor's own while it is active on a CPU
 * @vmcs_pa:	its physical address
 * @host_rsp:	the VMCS's host RSP, as vmx_switch() left it
 * @pending:	VMX_PENDING_*
 * @launched:	VMRESUME, not VMLAUNCH
 * @switched:	between .moved and .put: vmx_host_save() has been
 * @msrs_loaded: the CPU has the guest's system-call MSRs, until .put
 * @lists_msrs:	beside KVM: the processor switches them at each entry and exit
 * @keeps_shadow: RIP and RFLAGS are what they were at the last exit
 * @irq:	vector of an interrupt that waits for the guest, or 0
 * @cpu:	where the VMCS is active, -1: nowhere. Set on that CPU, and
 *		cleared there, with interrupts off
 * @active:	in that CPU's list of active ones
 * @eptp:	the second-level root
 * @vpid, @vpid_generation: the TLB tag
 * @controls:	primary processor-based controls
 * @event:	to be injected, in the format of the VMCS; @event_error with it
 * @rip, @rsp, @rflags: the guest's, between .put and .moved
 * @msrs:	the guest's system-call MSRs; writes are intercepted
 * @kernel_gs_base: the guest's, between .put and .moved
 * @cr2:	the guest's, while the host runs
 * @exit:	of the last exit
 * @host:	of the current entry
 * @loan:	beside KVM, what to leave behind: VMX_LOAN_* or KVM's VMCS
 * @guest_list, @host_list: with @lists_msrs, those that differ (SDM 25.8.2);
 *		aligned as kmalloc() aligns what is as large as this
 * @state:	what DUNE_SET_STATE wants, until the next entry
 */
struct vcpu_hw {
	void *vmcs;
	u64 vmcs_pa;
	u64 host_rsp;
	u32 pending;
	bool launched;
	bool switched;
	bool msrs_loaded;
	bool lists_msrs;
	bool keeps_shadow;
	u8 irq;
	int cpu;
	struct list_head active;
	u64 eptp;
	u64 vpid_generation;
	u16 vpid;
	u32 controls;
	u64 cr4;
	u32 event;
	u32 event_error;
	u64 rip;
	u64 rsp;
	u64 rflags;
	u64 msrs[VMX_MSRS];
	u64 kernel_gs_base;
	u64 cr2;
	struct vmx_exit exit;
	struct vmx_host host;
	u64 loan;
	struct vmx_msr_entry guest_list[VMX_MSRS];
	struct vmx_msr_entry host_list[VMX_MSRS];
	struct dune_state state;
};

/* vmx.c */
DECLARE_PER_CPU(u64, vmx_vmxon_pa);
void vmx_activate(struct vcpu_hw *hw);
void vmx_deactivate(struct vcpu_hw *hw);
bool vmx_take_vpid(struct vcpu_hw *hw);
void vmx_flush(const struct vcpu_hw *hw);
DECLARE_STATIC_CALL(vmx_split_lock, handle_guest_split_lock);
extern u32 vmx_revision;
extern u64 vmx_msr_bitmap;	/* physical address */

/* vmx_controls.c */
struct vmx_controls {
	u32 pin, cpu, cpu2, exit, entry;
	u32 timer;
};

#define VMX_PASID_TRANSLATION	BIT(21)	/* of cpu2 */

extern struct vmx_controls vmx_controls;
int vmx_controls_init(void);
enum answer vmx_answer(u32 reason);

/* vmx_vcpu.c: struct vendor's */
int vmx_create(struct dune_vcpu *vcpu);
void vmx_destroy(struct dune_vcpu *vcpu);
void vmx_set_root(struct dune_vcpu *vcpu, u64 root);
void vmx_get_state(struct dune_vcpu *vcpu, struct dune_state *state);
void vmx_set_state(struct dune_vcpu *vcpu, const struct dune_state *state);
void vmx_filter(struct dune_vcpu *vcpu, bool notsc, bool nocpuid);
void vmx_load(struct dune_vcpu *vcpu);
void vmx_store(struct dune_vcpu *vcpu);
void vmx_leave_cpu(struct dune_vcpu *vcpu);
void vmx_moved(struct dune_vcpu *vcpu, bool migrated);
void vmx_put(struct dune_vcpu *vcpu);
bool vmx_enter(struct dune_vcpu *vcpu, bool flush);
void vmx_read_regs(struct vcpu_hw *hw);
void vmx_reset_state(struct vcpu_hw *hw);

/* vmx_state.c: the current VMCS */
void vmx_write_setup(const struct vcpu_hw *hw);
void vmx_write_state(const struct dune_state *state);
void vmx_read_state(struct dune_state *state);

/* vmx_host.c: interrupts off */
void vmx_host_write_cpu(struct vmx_host *host);
void vmx_host_write(struct vmx_host *host);
void vmx_host_save(struct vcpu_hw *hw);
void vmx_host_restore(struct vcpu_hw *hw);
void vmx_load_msrs(struct vcpu_hw *hw);
void vmx_restore_msrs(struct vcpu_hw *hw);
void vmx_choose_msrs(struct vcpu_hw *hw);
void vmx_write_lists(struct vcpu_hw *hw);
int vmx_set_msr(struct vcpu_hw *hw, u32 msr, u64 value);

/* vmx_exit.c */
int vmx_handle_exit(struct dune_vcpu *vcpu);

/* vmx_switch.S; returns whether the entry failed without an exit */
bool vmx_switch(struct dune_regs *regs, bool launched, u64 *host_rsp);
extern const char vmx_switch_exit[];

DECLARE_STATIC_KEY_FALSE(vmx_flushes_l1d);

#endif /* DUNE_VMX_H */
