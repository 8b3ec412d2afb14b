/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A vCPU on AMD SVM, as the files of svm/ share it: vcpu.c (its VMCB), state.c (the
 * guest's state), enter.c (into the guest and back), switch.S (the world switch), host.c
 * (the host's state around it), tag.c (its TLB tag), kvm.c (the differences while KVM is
 * loaded), exit.c (the handler of exits) and intercepts.c (what causes them).
 * vmx/ has the same files, and also vmcs.c and pending.c, since a VMCS can be written only while
 * it is current. Its kvm.h is inline in each entry; kvm.c here is called at a context switch.
 *
 * APM is the AMD64 Architecture Programmer's Manual, vol. 2 unless another is named.
 */
#ifndef DUNE_SVM_SVM_H
#define DUNE_SVM_SVM_H

#include <linux/bitops.h>
#include <linux/jump_label.h>
#include <asm/msr-index.h>
#include <asm/page.h>

#include "dune/exit.h"
#include "dune/guest_state.h"
#include "dune/vcpu.h"
#include "virt/tag.h"
#include "x86/svm/instructions.h"
#include "x86/svm/vmcb.h"

struct dune_regs;
struct dune_state;

/**
 * struct vcpu_hw - the SVM part of a vCPU
 * @vmcb:	one page; the processor's own between VMRUN and #VMEXIT
 * @vmcb_pa:	its physical address
 * @cr4:	the guest's, which never changes
 * @host_pa:	physical address of the page from which VMLOAD restores this CPU's host
 * @tag:	the ASID, while KVM is not loaded
 * @hsave:	while KVM is loaded: this CPU's host save area (VM_HSAVE_PA), in halves
 * @ldt:	the host's LDTR selector, during an entry
 * @shares_asid: the ASID is one that KVM gives out, too
 * @has_kvm_tsc_ratio: KVM has left its guest's TSC ratio in this CPU
 * @host_tsc_ratio: that ratio, during an entry
 *
 * Only the vCPU's thread changes it, so there is no lock. The processor writes @vmcb between
 * VMRUN and #VMEXIT.
 */
struct vcpu_hw {
	struct vmcb *vmcb;
	u64 vmcb_pa;
	u64 cr4;
	u64 host_pa;
	struct tag tag;
	u32 hsave[2];
	u16 ldt;
	bool shares_asid;
	bool has_kvm_tsc_ratio;
	u64 host_tsc_ratio;
};

/* SVME must be set in a guest's EFER, too (APM 15.5.1). */
#define SVM_GUEST_EFER	(DUNE_GUEST_EFER | EFER_SVME)

/*
 * The C files describe each function. Unless a line here allows more, they are for the vCPU's
 * thread in process context, while its VMCB is not in a processor; none of them sleeps.
 */

/* state.c */
void svm_fix_state(struct vmcb_save_area *save, u64 cr4);
void svm_reset_state(struct vmcb *vmcb, u64 cr4);
int svm_get_state(struct dune_vcpu *vcpu, struct dune_state *state);
void svm_set_state(struct dune_vcpu *vcpu, const struct dune_state *state);
void svm_load_regs(struct dune_vcpu *vcpu);
void svm_store_regs(struct dune_vcpu *vcpu);

/* enter.c: for interrupts off */
bool svm_enter(struct dune_vcpu *vcpu, bool flush);

/* exit.c: for interrupts on; may sleep */
int svm_handle_exit(struct dune_vcpu *vcpu);
bool svm_raise_fault(struct dune_vcpu *vcpu, u64 address, u32 error);

/* host.c: for interrupts off; init and cleanup are called at load and may sleep */
int svm_host_init(void);
void svm_host_cleanup(void);
void svm_vcpu_load(struct dune_vcpu *vcpu, bool migrated);
void svm_vcpu_put(struct dune_vcpu *vcpu);
/*
 * Some emulators let XSETBV pass in spite of the intercept (docs/emulators.md). There the
 * host's XCR0 is checked after each exit.
 */
DECLARE_STATIC_KEY_FALSE(svm_check_xcr0);
extern u64 svm_host_xcr0;
/*
 * XSAVES and XRSTORS cannot be intercepted, and XSS is not the guest's: while a guest
 * runs XSS is 0, so that its ring 0 cannot read and write the thread's supervisor
 * state (its shadow stack).
 */
DECLARE_STATIC_KEY_FALSE(svm_hides_xss);
extern u64 svm_host_xss;

/* tag.c: for interrupts off, except for svm_flush_command(), which is for any context */
void svm_tag_load(struct vcpu_hw *hw, bool migrated);
void svm_tag_flush(struct vcpu_hw *hw);
void svm_tag_refused(void);
void svm_tag_share(struct vcpu_hw *hw);
u8 svm_flush_command(void);

/* kvm.c: for interrupts off; init and cleanup are called at load and may sleep */
int svm_kvm_init(void);
void svm_kvm_cleanup(void);
void svm_kvm_load(struct vcpu_hw *hw);
void svm_kvm_put(void);

/* intercepts.c: init and cleanup are called at load and may sleep */
int svm_intercepts_init(void);
void svm_intercepts_cleanup(void);
void svm_set_intercepts(struct vmcb_control_area *control);
void svm_forbid(struct dune_vcpu *vcpu, bool notsc, bool nocpuid);
enum answer svm_intercept_answer(u32 exit_code);

/* switch.S: for interrupts off */
void svm_switch(u64 vmcb_pa, struct dune_regs *regs, u64 host_pa);

#endif /* DUNE_SVM_SVM_H */
