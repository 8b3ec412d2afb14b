// SPDX-License-Identifier: GPL-2.0-only
/*
 * Into an SVM guest and back: the work around the world switch (switch.S).
 */
#include <asm/desc.h>
#include <asm/fpu/xcr.h>
#include <asm/trapnr.h>

#include "dune/svm/svm.h"
#include "virt/svm.h"
#include "virt/virt.h"
#include "x86/msr.h"

static u32 xcr0_low(void)
{
	u32 low, high;

	asm volatile("xgetbv" : "=a" (low), "=d" (high) : "c" (0));
	return low;
}

/*
 * KVM left its guest's TSC ratio in this CPU. The ratio would scale the TSC of our guest. The
 * MSR's number and value are loaded again after the switch: if they stayed in registers, the
 * compiler would save those registers at every entry.
 */
static __always_inline void switch_with_own_tsc(struct vcpu_hw *hw, struct dune_regs *regs)
{
	u32 msr = MSR_AMD64_TSC_RATIO;

	hw->host_tsc_ratio = msr_read(msr);
	msr_write(msr, SVM_TSC_RATIO_DEFAULT);
	svm_switch(hw->vmcb_pa, regs, hw->host_pa);
	OPTIMIZER_HIDE_VAR(msr);
	msr_write(msr, hw->host_tsc_ratio);
}

/*
 * While KVM is loaded virtualization may be on or off, and change whenever interrupts
 * are on. KVM leaves no TSC ratio when it turns virtualization off. Inline: returns are
 * counted, see run.c.
 */
static __always_inline void switch_with_kvm(struct vcpu_hw *hw, struct dune_regs *regs)
{
	svm_virt_reduce_speculation();
	if (likely(svm_virt_test_and_turn_on(hw->hsave))) {
		if (unlikely(hw->has_kvm_tsc_ratio))
			switch_with_own_tsc(hw, regs);
		else
			svm_switch(hw->vmcb_pa, regs, hw->host_pa);
		return;
	}
	svm_switch(hw->vmcb_pa, regs, hw->host_pa);
	svm_virt_turn_off();
}

/*
 * Restores what neither VMLOAD nor #VMEXIT gives back to the host: XSS, which was 0 in the
 * guest, LDTR, XCR0 and DR7.
 */
static __always_inline void restore_host(const struct vcpu_hw *hw)
{
	if (static_branch_unlikely(&svm_hides_xss))
		msr_write(MSR_IA32_XSS, svm_host_xss);
	if (unlikely(hw->ldt))
		asm volatile("lldt %0" : : "m" (hw->ldt));
	if (static_branch_unlikely(&svm_check_xcr0) && unlikely(xcr0_low() != (u32)svm_host_xcr0))
		xsetbv(XCR_XFEATURE_ENABLED_MASK, svm_host_xcr0);
	exit_restore_dr7();
}

/* Returns whether an interrupt of the host, which is still pending, ended the guest. */
static __always_inline bool finish_exit(struct dune_vcpu *vcpu, struct vmcb *vmcb,
					struct dune_regs *regs)
{
	/* An event is injected once; if its delivery failed, it is in EXITINTINFO. */
	vmcb->control.event_inj = 0;
	vmcb->control.tlb_ctl = TLB_CONTROL_DO_NOTHING;
	vmcb->control.clean = SVM_CLEAN_ALL & ~SVM_CLEAN_INTR;
	if (likely(vmcb->control.exit_code == SVM_EXIT_VMMCALL)) {
		regs->rax = vmcb->save.rax;
		return false;
	}
	/*
	 * The guest's state was refused. On hardware it is unchanged, but TCG has put
	 * the host's state there: user mode must not read that, and no guest run with it
	 * (docs/emulators.md).
	 */
	if (unlikely((u32)vmcb->control.exit_code == (u32)SVM_EXIT_ERR)) {
		svm_reset_state(vmcb, vcpu->hw->cr4);
		svm_tag_refused();
		return false;
	}
	regs->rax = vmcb->save.rax;
	/*
	 * DR6 holds the guest's value after #VMEXIT. It changes only with #DB, which causes an
	 * exit (svm_debug()), and the guest cannot read it.
	 */
	if (unlikely(vmcb->save.dr6 != DR6_RESERVED))
		set_debugreg(DR6_RESERVED, 6);
	/* The exit consumed the machine check. */
	if (unlikely(vmcb->control.exit_code == SVM_EXIT_EXCP_BASE + X86_TRAP_MC))
		exit_machine_check();
	return vmcb->control.exit_code == SVM_EXIT_INTR;
}

/* @kvm is a constant, so that each copy saves only the registers that it uses. */
static __always_inline bool enter(struct dune_vcpu *vcpu, bool flush, const bool kvm)
{
	struct vcpu_hw *hw = vcpu->hw;
	struct vmcb *vmcb = hw->vmcb;
	struct dune_regs *regs = &vcpu->run->regs;

	/*
	 * A command that is set already flushes this ASID, too: it flushes all ASIDs
	 * (svm_tag_load()), or the one that is shared with KVM (svm_tag_share()).
	 */
	if (unlikely(flush) && !vmcb->control.tlb_ctl)
		svm_tag_flush(hw);
	vmcb->save.rax = READ_ONCE(regs->rax);

	/*
	 * VMLOAD leaves LDTR null (save() in host.c). The selector is read from LDTR
	 * before the entry, and not taken from the mm: another thread publishes the
	 * first LDT of the process before it interrupts this CPU, and until then the
	 * GDT may describe the LDT of another process, which is freed.
	 */
	store_ldt(hw->ldt);
	if (static_branch_unlikely(&svm_hides_xss))
		msr_write(MSR_IA32_XSS, 0);
	if (kvm)
		switch_with_kvm(hw, regs);
	else
		svm_switch(hw->vmcb_pa, regs, hw->host_pa);
	restore_host(hw);
	return finish_exit(vcpu, vmcb, regs);
}

static noinline notrace bool enter_own(struct dune_vcpu *vcpu, bool flush)
{
	return enter(vcpu, flush, false);
}

static noinline notrace bool enter_with_kvm(struct dune_vcpu *vcpu, bool flush)
{
	return enter(vcpu, flush, true);
}

/* Implements @enter of struct vcpu_ops. */
notrace bool svm_enter(struct dune_vcpu *vcpu, bool flush)
{
	if (static_branch_unlikely(&virt_kvm_loaded))
		return enter_with_kvm(vcpu, flush);
	return enter_own(vcpu, flush);
}
