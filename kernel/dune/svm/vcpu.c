// SPDX-License-Identifier: GPL-2.0-only
/*
 * The SVM part of a vCPU: its VMCB, its state, the way into the guest and
 * back. References are to the AMD64 Architecture Programmer's Manual,
 * volume 2 (APM). The world switch itself is svm_switch.S; what follows an
 * exit is in svm_exit.c.
 */
#include <linux/hw_breakpoint.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <asm/cpufeature.h>
#include <asm/debugreg.h>
#include <asm/desc.h>
#include <asm/fpu/xcr.h>
#include <asm/hw_breakpoint.h>
#include <asm/mem_encrypt.h>

#include "dune/dune.h"
#include "dune/guest_state.h"
#include "dune/svm/svm.h"
#include "x86/registers.h"
#include "dune/vendor.h"

#define CHECK_REG(name, member) \
	static_assert(REGS_##name == offsetof(struct dune_regs, member))

CHECK_REG(RCX, rcx);
CHECK_REG(RDX, rdx);
CHECK_REG(RBX, rbx);
CHECK_REG(RBP, rbp);
CHECK_REG(RSI, rsi);
CHECK_REG(RDI, rdi);
CHECK_REG(R8, r8);
CHECK_REG(R9, r9);
CHECK_REG(R10, r10);
CHECK_REG(R11, r11);
CHECK_REG(R12, r12);
CHECK_REG(R13, r13);
CHECK_REG(R14, r14);
CHECK_REG(R15, r15);

/* VMCB clean bits, APM 15.15.3; the virtual interrupt is written each time. */
#define CLEAN_INTERCEPTS	BIT(0)
#define CLEAN_INTR		BIT(3)
#define CLEAN_ALL		0x3ffU

static u32 xcr0_low(void)
{
	u32 low, high;

	asm volatile("xgetbv" : "=a" (low), "=d" (high) : "c" (0));
	return low;
}

/* What of the guest's state is the kernel's to say. */
void svm_fix_state(struct vmcb_save_area *save, u64 cr4)
{
	save->cr0 = DUNE_GUEST_CR0;
	save->cr4 = cr4;
	save->efer = SVM_GUEST_EFER;
	save->dr6 = DR6_RESERVED;
	save->dr7 = 0x400;
	/* Write-back everywhere: memory types stay the kernel's business. */
	save->g_pat = 0x0606060606060606ULL;
}

void svm_reset_state(struct vmcb *vmcb, u64 cr4)
{
	memset(&vmcb->save, 0, sizeof(vmcb->save));
	svm_fix_state(&vmcb->save, cr4);
	vmcb->save.rflags = X86_EFLAGS_FIXED;
	vmcb->save.tr.attrib = 0x8b;	/* as DUNE_SET_STATE demands */
	vmcb->control.clean = 0;
}

int svm_create(struct dune_vcpu *vcpu)
{
	struct vcpu_hw *hw = kzalloc(sizeof(*hw), GFP_KERNEL_ACCOUNT);
	struct vmcb_control_area *control;

	if (!hw)
		return -ENOMEM;
	hw->vmcb = svm_alloc_page(GFP_KERNEL_ACCOUNT);
	if (!hw->vmcb) {
		kfree(hw);
		return -ENOMEM;
	}
	hw->vmcb_pa = __sme_pa(hw->vmcb);
	vcpu->hw = hw;

	control = &hw->vmcb->control;
	svm_intercepts_init(control);
	svm_permissions(control);
	control->misc_ctl = SVM_MISC_ENABLE_NP;

	hw->cr4 = guest_cr4(vcpu->smap);
	svm_reset_state(hw->vmcb, hw->cr4);
	return 0;
}

void svm_destroy(struct dune_vcpu *vcpu)
{
	free_page((unsigned long)vcpu->hw->vmcb);
	kfree(vcpu->hw);
}

void svm_set_root(struct dune_vcpu *vcpu, u64 root)
{
	vcpu->hw->vmcb->control.nested_cr3 = root;
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

void svm_get_state(struct dune_vcpu *vcpu, struct dune_state *state)
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
}

/*
 * Nothing needs checking here: the processor refuses an illegal state at
 * VMRUN (DUNE_EXIT_INVALID) and makes bases canonical (APM 15.5.1), and what
 * could reach beyond the guest (CR0, CR4, EFER, all of the control area) is
 * not in struct dune_state.
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

void svm_load(struct dune_vcpu *vcpu)
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
	 * The host's interrupts never ask the guest's RFLAGS.IF. Written as a
	 * whole, since TCG leaves anything here when it refuses a state. The
	 * virtual interrupt does wait for RFLAGS.IF, by itself (APM 15.21.4);
	 * its priority is above any V_TPR, which is ignored.
	 */
	vmcb->control.int_ctl &= V_TPR_MASK;
	vmcb->control.int_ctl |= V_INTR_MASKING_MASK;
	if (vcpu->irq) {
		vmcb->control.int_ctl |= V_IRQ_MASK | V_INTR_PRIO_MASK |
					 V_IGN_TPR_MASK;
		vmcb->control.int_vector = vcpu->irq;
	}
}

void svm_store(struct dune_vcpu *vcpu)
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

void svm_moved(struct dune_vcpu *vcpu, bool migrated)
{
	struct vcpu_hw *hw = vcpu->hw;

	svm_reduce_speculation();
	if (static_branch_unlikely(&dune_beside_kvm)) {
		svm_kvm_moved(hw);
		return;
	}
	hw->host_pa = svm_save_host();
	svm_asid_moved(hw, migrated);
}

void svm_filter(struct dune_vcpu *vcpu, bool notsc, bool nocpuid)
{
	struct vmcb_control_area *control = &vcpu->hw->vmcb->control;
	unsigned long *bits = (unsigned long *)control->intercepts;

	__assign_bit(INTERCEPT_RDTSC, bits, notsc);
	__assign_bit(INTERCEPT_RDTSCP, bits, notsc);
	__assign_bit(INTERCEPT_RDPRU, bits, notsc);
	__assign_bit(INTERCEPT_CPUID, bits, nocpuid);
	control->clean &= ~CLEAN_INTERCEPTS;
}

/*
 * KVM has left a factor for its guest's TSC here: not for ours. Nothing of this
 * is kept in a register, which every entry beside KVM would have to save.
 */
static __always_inline void switch_with_own_tsc(struct vcpu_hw *hw,
						struct dune_regs *regs)
{
	u32 msr = MSR_AMD64_TSC_RATIO;

	hw->tsc_factor = msr_read(msr);
	msr_write(msr, SVM_TSC_RATIO_DEFAULT);
	svm_switch(hw->vmcb_pa, regs, hw->host_pa);
	OPTIMIZER_HIDE_VAR(msr);
	msr_write(msr, hw->tsc_factor);
}

/* Returns whether virtualization was on. */
static __always_inline bool svm_is_on_or_turn_on(const struct vcpu_hw *hw)
{
	u32 low, high;
	bool on;

	asm volatile("rdmsr\n\tbts %[bit], %%eax"
		     : "=@ccc" (on), "=a" (low), "=d" (high)
		     : "c" (MSR_EFER), [bit] "i" (ilog2(EFER_SVME)));
	if (likely(on))
		return true;
	msr_write_halves(MSR_EFER, low, high);
	msr_write_halves(MSR_VM_HSAVE_PA, hw->hsave[0], hw->hsave[1]);
	return false;
}

static __always_inline void svm_turn_off(void)
{
	asm volatile("mov %[msr], %%ecx\n\t"
		     "rdmsr\n\tbtr %[bit], %%eax\n\twrmsr"
		     : : [msr] "i" (MSR_EFER), [bit] "i" (ilog2(EFER_SVME))
		     : "eax", "ecx", "edx", "cc", "memory");
}

/*
 * Beside KVM virtualization may be on or off, and change whenever interrupts
 * are on. Inline: see the return stack buffer in svm_switch.S. KVM leaves no
 * factor where it turns virtualization off.
 */
static __always_inline void switch_beside_kvm(struct vcpu_hw *hw,
					      struct dune_regs *regs)
{
	svm_reduce_speculation();
	if (likely(svm_is_on_or_turn_on(hw))) {
		if (unlikely(hw->scales_tsc))
			switch_with_own_tsc(hw, regs);
		else
			svm_switch(hw->vmcb_pa, regs, hw->host_pa);
		return;
	}
	svm_switch(hw->vmcb_pa, regs, hw->host_pa);
	svm_turn_off();
}

/* With a constant @beside: each has registers of its own to save. */
static __always_inline bool enter(struct dune_vcpu *vcpu, bool flush,
				  const bool beside)
{
	struct vcpu_hw *hw = vcpu->hw;
	struct vmcb *vmcb = hw->vmcb;
	struct dune_regs *regs = &vcpu->run->regs;

	/* A flush of all tags, asked for by a new ASID, includes this one. */
	if (unlikely(flush) && !vmcb->control.tlb_ctl)
		svm_asid_flush(hw);
	vmcb->save.rax = READ_ONCE(regs->rax);

	/*
	 * VMLOAD leaves LDTR null (svm_save_host()). The selector is the one
	 * from before the entry, and not what the mm says: another thread
	 * publishes the first LDT of the process before it interrupts this
	 * CPU, and until then the GDT may describe the LDT of another process,
	 * which is freed.
	 */
	store_ldt(hw->ldt);
	if (static_branch_unlikely(&svm_hides_xss))
		msr_write(MSR_IA32_XSS, 0);
	if (beside)
		switch_beside_kvm(hw, regs);
	else
		svm_switch(hw->vmcb_pa, regs, hw->host_pa);
	if (static_branch_unlikely(&svm_hides_xss))
		msr_write(MSR_IA32_XSS, svm_host_xss);
	if (unlikely(hw->ldt))
		asm volatile("lldt %0" : : "m" (hw->ldt));

	if (static_branch_likely(&svm_check_xcr0) &&
	    unlikely(xcr0_low() != (u32)svm_host_xcr0))
		xsetbv(XCR_XFEATURE_ENABLED_MASK, svm_host_xcr0);
	/* An event is injected once; what of it failed is in EXITINTINFO. */
	vmcb->control.event_inj = 0;
	vmcb->control.tlb_ctl = TLB_CONTROL_DO_NOTHING;
	vmcb->control.clean = CLEAN_ALL & ~CLEAN_INTR;
	/* #VMEXIT leaves DR7 cleared (APM 15.6), DR0 to DR3 are the host's. */
	if (unlikely(hw_breakpoint_active()))
		set_debugreg(__this_cpu_read(cpu_dr7), 7);
	if (likely(vmcb->control.exit_code == SVM_EXIT_VMMCALL)) {
		regs->rax = vmcb->save.rax;
		return false;
	}
	/*
	 * The guest's state was refused and is what it was, on hardware. TCG
	 * has put the host's there: nobody must see that, nor run with it.
	 */
	if (unlikely((u32)vmcb->control.exit_code == (u32)SVM_EXIT_ERR)) {
		svm_reset_state(vmcb, vcpu->hw->cr4);
		svm_asid_refused();
		return false;
	}
	regs->rax = vmcb->save.rax;
	/*
	 * DR6 is the guest's after #VMEXIT. It changes only with #DB, which
	 * is such an exit (svm_debug()), and the guest cannot read it.
	 */
	if (unlikely(vmcb->save.dr6 != DR6_RESERVED))
		set_debugreg(DR6_RESERVED, 6);
	/* The exit consumed the machine check. */
	if (unlikely(vmcb->control.exit_code == SVM_EXIT_EXCP_BASE + 18))
		dune_machine_check();
	return vmcb->control.exit_code == SVM_EXIT_INTR;
}

static noinline notrace bool enter_own(struct dune_vcpu *vcpu, bool flush)
{
	return enter(vcpu, flush, false);
}

static noinline notrace bool enter_beside_kvm(struct dune_vcpu *vcpu,
					      bool flush)
{
	return enter(vcpu, flush, true);
}

notrace bool svm_enter(struct dune_vcpu *vcpu, bool flush)
{
	if (static_branch_unlikely(&dune_beside_kvm))
		return enter_beside_kvm(vcpu, flush);
	return enter_own(vcpu, flush);
}
