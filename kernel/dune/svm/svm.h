/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the SVM files share: svm.c (the machine), svm_vcpu.c (VMCB and state),
 * svm_asid.c (TLB tags), svm_exit.c (why the guest was left), svm_kvm.c (what
 * is otherwise beside KVM), svm_intercepts.c (what the guest may not do) and
 * svm_switch.S (the world switch).
 */
#ifndef DUNE_SVM_H
#define DUNE_SVM_H

#include <linux/jump_label.h>
#include <asm/msr-index.h>
#include <asm/processor-flags.h>

#include "virt/compat.h"
#include "dune/dune.h"
#include "x86/msr.h"

/**
 * struct vcpu_hw - the SVM part of a vCPU
 * @vmcb:	one page; the processor's own between VMRUN and #VMEXIT
 * @vmcb_pa:	its physical address
 * @host_pa:	where this CPU keeps what VMLOAD must restore for the host
 * @asid_generation: generation of the CPU's counter that the ASID is from
 * @hsave:	this CPU's host save area (VM_HSAVE_PA), beside KVM: the halves
 * @shares_asid: the ASID is one that KVM gives out too
 * @ldt:	the host's LDTR selector, during an entry
 * @scales_tsc:	KVM has left a factor for its guest's TSC in this CPU
 * @tsc_factor:	that factor, during an entry
 */
struct vcpu_hw {
	struct vmcb *vmcb;
	u64 vmcb_pa;
	u64 cr4;
	u64 host_pa;
	u64 asid_generation;
	u32 hsave[2];
	u16 ldt;
	bool shares_asid;
	bool scales_tsc;
	u64 tsc_factor;
};

/* SVME must be set in a guest's EFER too, APM 15.5.1. */
#define SVM_GUEST_EFER	(EFER_SCE | EFER_LME | EFER_LMA | EFER_NX | EFER_SVME)

#define SVM_CLEAN_DEBUG	BIT(6)	/* VMCB clean bit of DR6 and DR7, APM 15.15.3 */

/* svm.c */
extern bool svm_has_nrips;
/*
 * Emulators are known that let XSETBV pass in spite of the intercept. There
 * the host's XCR0 is checked after each exit.
 */
DECLARE_STATIC_KEY_FALSE(svm_check_xcr0);
extern u64 svm_host_xcr0;
/*
 * XSAVES and XRSTORS cannot be intercepted, and XSS is not the guest's: while
 * it runs XSS is 0, lest ring 0 of a guest reads and writes the thread's
 * supervisor state (its shadow stack).
 */
DECLARE_STATIC_KEY_FALSE(svm_hides_xss);
extern u64 svm_host_xss;
void *svm_alloc_page(gfp_t gfp);
void svm_set_reduced_speculation(void);
void svm_permissions(struct vmcb_control_area *control);
u64 svm_save_host(void);
u64 svm_hsave(void);

/* Interrupts off, before a guest runs on this CPU. */
static __always_inline void svm_reduce_speculation(void)
{
	if (kernel_reduces_speculation())
		svm_set_reduced_speculation();
}

/* svm_vcpu.c: struct vendor's, and */
int svm_create(struct dune_vcpu *vcpu);
void svm_destroy(struct dune_vcpu *vcpu);
void svm_set_root(struct dune_vcpu *vcpu, u64 root);
void svm_get_state(struct dune_vcpu *vcpu, struct dune_state *state);
void svm_set_state(struct dune_vcpu *vcpu, const struct dune_state *state);
void svm_filter(struct dune_vcpu *vcpu, bool notsc, bool nocpuid);
void svm_load(struct dune_vcpu *vcpu);
void svm_store(struct dune_vcpu *vcpu);
void svm_moved(struct dune_vcpu *vcpu, bool migrated);
bool svm_enter(struct dune_vcpu *vcpu, bool flush);
void svm_fix_state(struct vmcb_save_area *save, u64 cr4);
void svm_reset_state(struct vmcb *vmcb, u64 cr4);

/* svm_exit.c */
int svm_handle_exit(struct dune_vcpu *vcpu);

/* svm_asid.c: interrupts off, but for svm_asid_init() */
void svm_asid_init(void);
void svm_asid_cpu_on(void);
void svm_asid_moved(struct vcpu_hw *hw, bool migrated);
void svm_asid_share(struct vcpu_hw *hw);
void svm_asid_refused(void);
u32 svm_asid_shared(void);
void svm_asid_flush(struct vcpu_hw *hw);
u8 svm_asid_flush_command(void);

/* svm_kvm.c: interrupts off, but for init and exit */
int svm_kvm_init(void);
void svm_kvm_exit(void);
void svm_kvm_moved(struct vcpu_hw *hw);
void svm_kvm_forget(void);
void svm_put(struct dune_vcpu *vcpu);

/* svm_intercepts.c */
void svm_intercepts_init(struct vmcb_control_area *control);
enum answer svm_intercept_answer(u32 exit_code);

/* svm_switch.S */
void svm_switch(u64 vmcb_pa, struct dune_regs *regs, u64 host_pa);

#endif /* DUNE_SVM_H */
