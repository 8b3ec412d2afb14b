/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A vCPU on Intel VT-x, as the files of vmx/ share it: vcpu.c (how it is made), vmcs.c (its
 * VMCS and the CPU that has it), pending.c (what the next entry writes there), state.c (the
 * guest's state), enter.c (into the guest and back), switch.S (the world switch), host.c (the
 * host's state around it), tag.c (its TLB tag), kvm.h (the differences while KVM is loaded),
 * exit.c (the handler of exits) and intercepts.c (what causes them). SDM is the Intel 64 and
 * IA-32 Architectures Software Developer's Manual, vol. 3.
 *
 * The VMCS is touched only with interrupts off. The values that an entry needs are collected
 * in struct vcpu_hw (@pending), and pending.c writes them; read_exit() and read_hypercall()
 * read those that an exit reports. Between two entries the thread can be switched away from,
 * and the VMCS of another vCPU, or of another hypervisor, becomes the current one.
 */
#ifndef DUNE_VMX_VMX_H
#define DUNE_VMX_VMX_H

#include <linux/jump_label.h>
#include <linux/list.h>
#include <asm/desc_defs.h>
#include <asm/msr-index.h>
#include <asm/trapnr.h>
#include <asm/vmx.h>

#include "dune/exit.h"
#include "dune/guest_state.h"
#include "dune/vcpu.h"
#include "virt/tag.h"
#include "virt/virt.h"
#include "x86/vmx/instructions.h"

struct dune_regs;

/* The system-call MSRs of the guest, which are not in the VMCS: indices of vmx_msr_numbers[]. */
enum vmx_msr {
	VMX_MSR_STAR,
	VMX_MSR_LSTAR,
	VMX_MSR_CSTAR,
	VMX_MSR_SFMASK,
	VMX_MSRS
};

/* The VMCS's fields for controls: indices of vmx_controls[]. */
enum vmx_control {
	VMX_PIN,
	VMX_CPU,	/* primary processor-based controls */
	VMX_CPU2,	/* secondary ones */
	VMX_EXIT,
	VMX_ENTRY,
	VMX_CONTROLS
};

/* The host handles #MC. The delivery of #DB and #AC could be without end: dune/exit.h. */
#define VMX_EXCEPTIONS	(BIT(X86_TRAP_DB) | BIT(X86_TRAP_AC) | BIT(X86_TRAP_MC))

/*
 * vcpu_hw.pending: what has to be done before the next world switch, except for VMX_PENDING_UNREAD.
 * The first nine bits and VMX_PENDING_MSRS are each something to write into the VMCS.
 */
#define VMX_PENDING_SETUP	BIT(0)	/* all fields that never change */
#define VMX_PENDING_CPU		BIT(1)	/* host fields of this CPU */
#define VMX_PENDING_HOST	BIT(2)	/* host fields of this thread */
#define VMX_PENDING_CONTROLS	BIT(3)	/* vcpu_hw.controls */
#define VMX_PENDING_STATE	BIT(4)	/* vcpu_hw.state */
#define VMX_PENDING_REGS	BIT(5)	/* vcpu_hw.rip, rsp, rflags */
#define VMX_PENDING_SKIP	BIT(6)	/* RIP: to the next instruction */
#define VMX_PENDING_EVENT	BIT(7)	/* vcpu_hw.event */
#define VMX_PENDING_IRQ		BIT(8)	/* vcpu_hw.irq, or the window for it */
#define VMX_PENDING_FLUSH	BIT(9)	/* INVEPT: what the TLB knows of the EPT */
#define VMX_PENDING_MSRS	BIT(10)	/* the places of vcpu_hw.guest_list and host_list */
/*
 * Set with VMX_PENDING_EVENT for #PF of vmx_raise_fault(): the error code still needs U/S, which
 * the guest's ring decides.
 */
#define VMX_PENDING_RING	BIT(11)
/*
 * Set when the VMCS is cleared after an entry while KVM is loaded, or after DUNE_GET_STATE
 * (release_here()): the VMCS is active on no CPU.
 */
#define VMX_PENDING_ACTIVATE	BIT(12)
/*
 * Set when the VMCS is cleared after an entry while KVM is loaded: only the VMCS has the registers
 * of that exit. They are read when the thread is switched away from, or the run ends. An entry
 * clears the bit, since the VMCS has them already.
 */
#define VMX_PENDING_UNREAD	BIT(13)

/*
 * struct vmx_exit.reason: one of the SDM's exit reasons and the flag of a failed entry. A
 * failed entry has one cause of its own.
 */
#define VMX_REASON_MASK		(VMX_EXIT_REASONS_FAILED_VMENTRY | 0xffff)
#define VMX_REASON_MCE_AT_ENTRY	(VMX_EXIT_REASONS_FAILED_VMENTRY | \
				 EXIT_REASON_MCE_DURING_VMENTRY)
/* Dune's own flag: VMCALL was executed outside of ring 0, so it is no hypercall. */
#define VMX_REASON_OUTER_RING	BIT(16)
/* Dune's own reason: the CPU refused VMXON, so the guest's state was not looked at. */
#define VMX_REASON_CPU_REFUSED	(VMX_EXIT_REASONS_FAILED_VMENTRY | BIT(17))

/**
 * struct vmx_exit - the reason of an exit, read while the VMCS was current
 * @qualification: exit qualification (SDM 28.2.1). After VMCALL it is not read, and has the value
 *		of an earlier exit: vmx_exit_qualification()
 * @gpa:	guest-physical address of an EPT violation; undefined for other reasons
 * @rip:	the guest's; 0 if the entry failed without an exit
 * @reason:	VMX_REASON_* or EXIT_REASON_*
 * @interruption: VM-exit interruption information (SDM 25.9.2)
 * @vectoring:	IDT-vectoring information (SDM 25.9.3)
 * @vectoring_error: the error code of @vectoring
 * @instruction_length: bytes of the instruction that caused the exit
 * @checks_alignment: of an exception: it came from ring 3, with RFLAGS.AC
 */
struct vmx_exit {
	u64 qualification;
	u64 gpa;
	u64 rip;
	u32 reason;
	u32 interruption;
	u32 vectoring;
	u32 vectoring_error;
	u32 instruction_length;
	bool checks_alignment;
};

/*
 * Returns the exit qualification, which is 0 after VMCALL (SDM 28.2.1): it is not read there, so
 * that the hot path is short.
 */
static inline u64 vmx_exit_qualification(const struct vmx_exit *exit)
{
	return (exit->reason & 0xffff) == EXIT_REASON_VMCALL ? 0 : exit->qualification;
}

/* Returns the guest-physical address of an EPT violation, and 0 for other exits. */
static inline u64 vmx_exit_gpa(const struct vmx_exit *exit)
{
	return exit->reason == EXIT_REASON_EPT_VIOLATION ? exit->gpa : 0;
}

/**
 * struct vmx_host - the host's state around an entry (SDM 28.5)
 * @cr3:	copy of the VMCS's host field, which is written again when CR3 differs
 * @cr4:	the same for CR4
 * @debugctl:	cleared by an exit, restored by restore_after_exit()
 * @fs_base:	for the VMCS's host field
 * @kernel_gs_base: restored by vmx_host_restore(), as all that follow
 * @gdt:	GDTR. A CPU has the same one from before its first user thread on, also after it
 *		was off line or suspended
 * @idt:	IDTR, whose base is also a host field of the VMCS
 * @ds:		selectors
 * @es:		see @ds
 * @fs:		see @ds
 * @gs:		see @ds
 * @ldt:	see @ds
 */
struct vmx_host {
	u64 cr3;
	u64 cr4;
	u64 debugctl;
	u64 fs_base;
	u64 kernel_gs_base;
	struct desc_ptr gdt;
	struct desc_ptr idt;
	u16 ds, es, fs, gs, ldt;
};

/* VMPTRST reports this if no VMCS is current (SDM vol. 3, 31.3). */
#define VMCS_NONE	(~0ULL)

/* How an entry while KVM is loaded found virtualization. */
enum vmx_found {
	VMX_FOUND_ON,		/* CR4.VMXE is set, and the CPU is in VMX operation */
	VMX_FOUND_OUTSIDE,	/* CR4.VMXE is set, but the CPU is outside of VMX operation */
	VMX_FOUND_OFF,
};

/* How a VMCS was made current outside of an entry: what release_here() undoes. */
enum vmx_current {
	VMX_WAS_ACTIVE,		/* on this CPU, since the last entry: nothing to undo */
	VMX_ACTIVATED,
	VMX_BORROWED,		/* the CPU from KVM: vmx_borrow() */
};

/**
 * struct vmx_loan - what an exit while KVM is loaded must restore
 * @found:	how vmx_borrow() found virtualization
 * @vmcs:	with VMX_FOUND_ON: physical address of the VMCS that was current, or VMCS_NONE
 */
struct vmx_loan {
	enum vmx_found found;
	u64 vmcs;
};

/**
 * struct vcpu_hw - the VT-x part of a vCPU
 * @vmcs:	one page; the processor's own while it is active on a CPU
 * @vmcs_pa:	its physical address
 * @host_rsp:	the VMCS's host RSP, as vmx_switch() left it
 * @pending:	VMX_PENDING_*
 * @launched:	the next entry is VMRESUME, not VMLAUNCH
 * @switched:	between @load and @put of struct vcpu_ops: the host's state is in @host
 * @msrs_loaded: the CPU has the guest's system-call MSRs, until @put
 * @lists_msrs:	the processor switches these MSRs at each entry and exit, while KVM is
 *		loaded
 * @left_epoch:	dune_vcpu.epoch at the last @put
 * @keeps_shadow: RIP and RFLAGS are what they were at the last exit, so a shadow of STI or
 *		MOV SS still holds
 * @no_cpuid:	CPUID raises #GP: @forbid of struct vcpu_ops
 * @irq:	vector of an interrupt that waits for the guest, or 0
 * @injected_irq: vector of an interrupt that this entry injects, or 0
 * @cpu:	the CPU on which the VMCS is active; -1: on none. Set on that CPU, and
 *		cleared there, with interrupts off. While interrupts are on, no other CPU than
 *		dune_vcpu.cpu, so that run_load() knows where to have the VMCS cleared
 * @active:	in that CPU's list of active VMCSs
 * @eptp:	the second level's root
 * @tag:	the VPID
 * @controls:	primary processor-based controls
 * @cr4:	the guest's, which never changes
 * @event:	to be injected, in the format of the VMCS
 * @event_error: the error code of @event
 * @rip:	the guest's registers, between @put and @load, unless VMX_PENDING_UNREAD is set.
 *		While VMX_PENDING_REGS is set they are newer than those in the VMCS.
 * @rsp:	see @rip
 * @rflags:	see @rip
 * @msrs:	the guest's system-call MSRs; writes are intercepted
 * @kernel_gs_base: the guest's, between @put and @load
 * @cr2:	the guest's, while the host runs
 * @exit:	the reason of the last exit
 * @host:	the host's state around the current entry
 * @loan:	what the exit must restore, while KVM is loaded
 * @listed:	the number of MSRs in the lists that follow
 * @guest_list:	the guest's values of those MSRs that differ, for the processor with @lists_msrs
 *		(SDM 25.8.2), and otherwise for vmx_load_msrs(). If VMX_PENDING_MSRS is set and
 *		@msrs_loaded is not, @load of struct vcpu_ops fills both lists anew. The list is
 *		aligned to 16 bytes, as the SDM demands: by the type, and because
 *		kmalloc() aligns an object of this size to at least as much
 * @host_list:	the same for the host's values
 * @state:	the state that DUNE_SET_STATE wants, until the next entry
 *
 * Where the guest's RIP, RSP and RFLAGS are: vmx_load_regs() takes them from user mode to @rip,
 * @rsp and @rflags, and sets VMX_PENDING_REGS. The next entry writes them to the VMCS, and from
 * then on the VMCS has them. @put reads them again, or vmx_host_cpu_off() before the VMCS is
 * cleared, and vmx_store_regs() gives them to user mode. A run that resumes the last one
 * (can_resume() in run.c) does not take them from there: the VMCS still has them, in its page in
 * memory after it was cleared (SDM 25.11.1). If the guest continues after the instruction of an
 * exit, VMX_PENDING_SKIP has the next entry move RIP in the VMCS; if @put comes first, it moves
 * @rip and sets VMX_PENDING_REGS. While VMX_PENDING_UNREAD is set only the VMCS has the registers;
 * if it stays set after @put, the next entry uses them there, or vmx_wait_for_regs() reads them.
 *
 * Only the vCPU's thread changes it, so there is no lock, with one exception: vmx_host_cpu_off()
 * and deactivate_here() run on CPU @cpu with interrupts off, and change @cpu, @active,
 * @msrs_loaded, @rip, @rsp and @rflags. VMX_PENDING_REGS protects the registers
 * (vmx_load_regs()).
 */
struct vcpu_hw {
	void *vmcs;
	u64 vmcs_pa;
	u64 host_rsp;
	u64 left_epoch;
	u32 pending;
	bool launched;
	bool switched;
	bool msrs_loaded;
	bool lists_msrs;
	bool keeps_shadow;
	bool no_cpuid;
	u8 irq;
	u8 injected_irq;
	int cpu;
	struct list_head active;
	u64 eptp;
	struct tag tag;
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
	struct vmx_loan loan;
	unsigned int listed;
	struct vmx_msr_entry guest_list[VMX_MSRS];
	struct vmx_msr_entry host_list[VMX_MSRS];
	struct dune_state state;
};

/*
 * Returns whether an entry has to borrow the CPU from KVM. While a VMCS that became active
 * before KVM was loaded is still active, virtualization on its CPU is still Dune's: KVM runs
 * no code before virt_cpus_set_kvm() has returned (virt/kvm.c).
 */
static __always_inline bool vmx_is_with_kvm(const struct vcpu_hw *hw)
{
	return static_branch_unlikely(&virt_kvm_loaded) && hw->cpu < 0;
}

/*
 * Returns whether an entry while KVM is loaded can take a fast way: the VMCS is active nowhere,
 * as after each such entry, and the entry has nothing to write.
 */
static __always_inline bool vmx_is_ready_with_kvm(const struct vcpu_hw *hw)
{
	return hw->pending == (VMX_PENDING_ACTIVATE | VMX_PENDING_UNREAD);
}

/*
 * The C files describe each function. Unless a line here allows more, they are for the vCPU's
 * thread in process context, with interrupts on; none of them sleeps.
 */

/* vmcs.c: for interrupts off, except for init, deactivate, make_current and wait_for_regs */
void vmx_vmcs_init(void);
void vmx_write_setup(const struct vcpu_hw *hw);
DECLARE_PER_CPU(const struct vcpu_hw *, vmx_current_here);
struct vcpu_hw *vmx_active_here(void);
void vmx_read_and_deactivate(struct vcpu_hw *hw);
void vmx_activate(struct vcpu_hw *hw);
void vmx_deactivate(struct vcpu_hw *hw);
bool vmx_make_current(struct vcpu_hw *hw, enum vmx_current *how);
void vmx_release_current(struct vcpu_hw *hw, enum vmx_current how);
void vmx_read_regs(struct vcpu_hw *hw);
void vmx_read_last_regs(struct vcpu_hw *hw);
void vmx_skip_in_regs(struct vcpu_hw *hw);
void vmx_wait_for_regs(struct vcpu_hw *hw);

/* state.c: vmx_write_state() is for interrupts off, with the VMCS current */
void vmx_write_state(const struct dune_state *state);
int vmx_get_state(struct dune_vcpu *vcpu, struct dune_state *state);
void vmx_set_state(struct dune_vcpu *vcpu, const struct dune_state *state);
void vmx_reset_state(struct vcpu_hw *hw);
void vmx_load_regs(struct dune_vcpu *vcpu);
void vmx_store_regs(struct dune_vcpu *vcpu);

/* pending.c: for interrupts off */
void vmx_write_pending(struct vcpu_hw *hw);

/* enter.c: vmx_enter() is for interrupts off; init is called at load and may sleep */
void vmx_enter_init(void);
bool vmx_enter(struct dune_vcpu *vcpu, bool flush);

/* host.c: for interrupts off, except for vmx_set_msr() */
void vmx_host_write_cpu(const struct vmx_host *host);
void vmx_restore_msrs(struct vcpu_hw *hw);
void vmx_write_lists(struct vcpu_hw *hw);
void vmx_vcpu_load(struct dune_vcpu *vcpu, bool migrated);
void vmx_vcpu_put(struct dune_vcpu *vcpu);
void vmx_host_cpu_off(void);
int vmx_set_msr(struct vcpu_hw *hw, u32 msr, u64 value);

/* tag.c: for interrupts off */
bool vmx_tag_take(struct vcpu_hw *hw);
void vmx_tag_flush(const struct vcpu_hw *hw);

/* exit.c: may sleep */
int vmx_handle_exit(struct dune_vcpu *vcpu);
bool vmx_raise_fault(struct dune_vcpu *vcpu, u64 address, u32 error);

/* intercepts.c: init and cleanup are called at load and may sleep */
extern u32 vmx_controls[VMX_CONTROLS];	/* the same for each vCPU, but for vcpu_hw.controls */
extern u32 vmx_timer;			/* of the preemption timer, in its units */
extern const u32 vmx_msr_numbers[VMX_MSRS];
extern u64 vmx_msr_bitmap;	/* physical address */
int vmx_intercepts_init(void);
void vmx_intercepts_cleanup(void);
void vmx_forbid(struct dune_vcpu *vcpu, bool notsc, bool nocpuid);
enum answer vmx_intercept_answer(u32 reason);

/* switch.S: for interrupts off; returns whether the entry failed without an exit */
bool vmx_switch(struct dune_regs *regs, bool launched, u64 *host_rsp);
extern const char vmx_switch_exit[];

#endif /* DUNE_VMX_VMX_H */
