// SPDX-License-Identifier: GPL-2.0-only
/*
 * The host's state around VT-x. An exit loads control registers, selectors and bases
 * from the VMCS (SDM 28.5). Other state is not needed by the kernel itself while the
 * thread is in its run loop: system-call MSRs, KERNEL_GS_BASE, user segments, LDTR,
 * limits of descriptor tables and the TSS. This state keeps the guest's values, or
 * the processor's defaults, until the thread is switched away from or leaves DUNE_RUN, so
 * it costs nothing at an exit.
 */
#include <linux/lockdep.h>
#include <asm/desc.h>
#include <asm/fsgsbase.h>
#include <asm/msr.h>
#include <asm/nospec-branch.h>
#include <asm/segment.h>

#include "dune/compat.h"
#include "dune/vmx/kvm.h"
#include "dune/vmx/vmx.h"
#include "x86/msr.h"

/* The host's values, which never change and are the same on all CPUs. */
static u64 host_msrs[VMX_MSRS];
static bool host_msrs_known;

/*
 * Called before the first entry, and not when the module is loaded: KVM leaves its guest's
 * values in a CPU until a thread returns to user mode there. Right before an entry
 * the CPU has the host's values, see run_loop(). CPUs that come here at the same time read
 * the same values.
 */
static void learn_host_msrs(void)
{
	int i;

	for (i = 0; i < VMX_MSRS; i++)
		host_msrs[i] = msr_read(vmx_msr_numbers[i]);
	/* Pairs with the acquire in vmx_host_save(). */
	smp_store_release(&host_msrs_known, true);
}

/* Returns the base of this CPU's TSS, from its descriptor in @gdt. */
static u64 tss_base(const struct desc_ptr *gdt)
{
	const struct ldttss_desc *tss;
	u16 tr;

	asm volatile("str %0" : "=r" (tr));
	tss = (void *)(gdt->address + tr);
	/* The kernel may place it anywhere: without the cast bit 31 would be a sign. */
	return tss->base0 | tss->base1 << 16 | (u64)tss->base2 << 24 | (u64)tss->base3 << 32;
}

/* Writes the host fields that depend on this CPU into the current VMCS. */
void vmx_host_write_cpu(const struct vmx_host *host)
{
	struct desc_ptr gdt;

	lockdep_assert_irqs_disabled();
	native_store_gdt(&gdt);
	vmcs_write(HOST_GDTR_BASE, gdt.address);
	vmcs_write(HOST_IDTR_BASE, host->idt.address);
	vmcs_write(HOST_TR_BASE, tss_base(&gdt));
	vmcs_write(HOST_GS_BASE, msr_read(MSR_GS_BASE));
	vmcs_write(HOST_IA32_SYSENTER_CS, msr_read(MSR_IA32_SYSENTER_CS));
	vmcs_write(HOST_IA32_SYSENTER_ESP, msr_read(MSR_IA32_SYSENTER_ESP));
	vmcs_write(HOST_IA32_SYSENTER_EIP, msr_read(MSR_IA32_SYSENTER_EIP));
}

/*
 * Saves the host's state, except for what is in the VMCS, before the first entry since the
 * thread runs on this CPU. Loads the guest's KERNEL_GS_BASE. Interrupts are off.
 */
static void vmx_host_save(struct vcpu_hw *hw)
{
	struct vmx_host *host = &hw->host;

	/* Pairs with the release in learn_host_msrs(). */
	if (unlikely(!smp_load_acquire(&host_msrs_known)))
		learn_host_msrs();
	savesegment(ds, host->ds);
	savesegment(es, host->es);
	savesegment(fs, host->fs);
	savesegment(gs, host->gs);
	store_ldt(host->ldt);
	native_store_gdt(&host->gdt);
	store_idt(&host->idt);
	if (boot_cpu_has(X86_FEATURE_FSGSBASE))
		host->fs_base = rdfsbase();
	else
		host->fs_base = msr_read(MSR_FS_BASE);
	host->kernel_gs_base = msr_read(MSR_KERNEL_GS_BASE);
	msr_write(MSR_KERNEL_GS_BASE, hw->kernel_gs_base);
	hw->switched = true;
}

/*
 * Fills the lists of those MSRs whose values differ. Called when the guest's values have changed:
 * while the CPU has them, vmx_restore_msrs() must find each that is not the host's. Where the
 * values change without a call of this function, the CPU has the host's until the next @load of
 * struct vcpu_ops, which calls it. So vmx_host_cpu_off(), in an interrupt in between, does not use
 * the old lists, nor does the processor: VMX_PENDING_MSRS is set. Interrupts are off.
 */
static void list_msrs(struct vcpu_hw *hw)
{
	unsigned int i, n = 0;

	lockdep_assert_irqs_disabled();
	for (i = 0; i < VMX_MSRS; i++) {
		if (hw->msrs[i] == host_msrs[i])
			continue;
		hw->guest_list[n].index = vmx_msr_numbers[i];
		hw->guest_list[n].value = hw->msrs[i];
		hw->host_list[n].index = vmx_msr_numbers[i];
		hw->host_list[n].value = host_msrs[i];
		n++;
	}
	hw->listed = n;
}

/* Reads the halves of a value from memory: shifts would cost two instructions more for each. */
static void write_msrs(const struct vmx_msr_entry *list, unsigned int count)
{
	const struct vmx_msr_entry *end = list + count;

	for (; list < end; list++) {
		const u32 *halves = (const u32 *)&list->value;

		msr_write_halves(list->index, halves[0], halves[1]);
	}
}

/* Loads the guest's system-call MSRs into the CPU. Interrupts are off. */
static void vmx_load_msrs(struct vcpu_hw *hw)
{
	write_msrs(hw->guest_list, hw->listed);
	hw->msrs_loaded = true;
}

/* Restores the host's system-call MSRs. */
void vmx_restore_msrs(struct vcpu_hw *hw)
{
	lockdep_assert_irqs_disabled();
	write_msrs(hw->host_list, hw->listed);
	hw->msrs_loaded = false;
}

/*
 * The thread has been off the CPU, or KVM was loaded or unloaded. While KVM is loaded
 * the MSRs must have the host's values whenever interrupts are on: then the processor switches
 * them at each entry and exit, by lists. Interrupts are off.
 *
 * The kernel patches the branches on virt_kvm_loaded one after the other, so the entry that follows
 * may decide otherwise. Both ways of switching are right in either: KVM runs no code yet, or none
 * any more, and virt_epoch advances after the last branch was patched (virt_cpus_set_kvm()).
 */
static void vmx_choose_msrs(struct vcpu_hw *hw)
{
	bool lists = static_branch_unlikely(&virt_kvm_loaded);

	/* vmx_set_state() and vmx_reset_state() have changed them, while the CPU had the host's. */
	if (hw->pending & VMX_PENDING_MSRS && !hw->msrs_loaded)
		list_msrs(hw);
	if (lists != hw->lists_msrs) {
		hw->lists_msrs = lists;
		hw->pending |= VMX_PENDING_MSRS;
	}
	if (lists == hw->msrs_loaded) {
		if (lists)
			vmx_restore_msrs(hw);
		else
			vmx_load_msrs(hw);
	}
}

/* Writes the addresses and the lengths of the lists into the current VMCS. */
void vmx_write_lists(struct vcpu_hw *hw)
{
	unsigned int n = hw->lists_msrs ? hw->listed : 0;

	lockdep_assert_irqs_disabled();
	vmcs_write(VM_ENTRY_MSR_LOAD_ADDR, __pa(hw->guest_list));
	vmcs_write(VM_ENTRY_MSR_LOAD_COUNT, n);
	vmcs_write(VM_EXIT_MSR_LOAD_ADDR, __pa(hw->host_list));
	vmcs_write(VM_EXIT_MSR_LOAD_COUNT, n);
}

/* Restores the selectors, with the base of FS, which an exit or the guest may have changed. */
static void restore_segments(const struct vmx_host *host)
{
	/*
	 * LDTR is first, since the other selectors may refer to the LDT. If LDTR was
	 * null at the last entry, an interrupt may have loaded it since.
	 */
	if (unlikely(host->ldt))
		asm volatile("lldt %0" : : "r" (host->ldt));
	/* An exit loads null selectors into DS and ES (SDM 28.5.2). */
	if (unlikely(host->ds | host->es)) {
		loadsegment(ds, host->ds);
		loadsegment(es, host->es);
	}
	if (unlikely(host->fs)) {
		loadsegment(fs, host->fs);
		msr_write(MSR_FS_BASE, host->fs_base);
	}
	/* This changes KERNEL_GS_BASE, which the caller restores afterwards. */
	if (unlikely(host->gs))
		load_gs_index(host->gs);
}

/*
 * On the CPU of vmx_host_save(), with interrupts off: restores what an exit leaves changed.
 * Keeps the guest's KERNEL_GS_BASE in @hw.
 */
static void vmx_host_restore(struct vcpu_hw *hw)
{
	struct vmx_host *host = &hw->host;

	hw->switched = false;
	hw->kernel_gs_base = msr_read(MSR_KERNEL_GS_BASE);
	restore_segments(host);
	msr_write(MSR_KERNEL_GS_BASE, host->kernel_gs_base);
	/* The exit made the limits 0xffff, the TSS's 0x67: no I/O bitmap (SDM 28.5.2). */
	native_load_gdt(&host->gdt);
	native_load_idt(&host->idt);
	invalidate_tss_limit();
}

/*
 * KVM executes an IBPB when another VMCS follows on a CPU, but only if both belong to KVM. The
 * kernel of a KVM guest runs in the same mode as Dune's guest, and other mitigations
 * do not tell them apart. If KVM has no VMCS on this CPU, no IBPB is needed.
 */
static noinline void ibpb_if_vmcs(void)
{
	u64 current_vmcs;

	if (__read_cr4() & X86_CR4_VMXE && vmptrst(&current_vmcs) && current_vmcs != VMCS_NONE)
		indirect_branch_prediction_barrier();
}

static __always_inline void ibpb_if_kvm_has_vmcs(void)
{
	if (static_branch_unlikely(&virt_kvm_loaded))
		ibpb_if_vmcs();
}

/*
 * Returns whether nothing has changed since @put of the last run, which this one resumes: the
 * thread has only made the guest's call, so what vmx_host_save() has saved is still valid. It was
 * not switched away from, so it is on the same CPU and no other thread has taken a TLB tag; nor has
 * this thread, since no other vCPU was loaded here (can_resume()). Its VMCS is still current: a
 * request to another vCPU (DUNE_GET_STATE), which a handler of a signal may have made, makes
 * another one current. If virtualization was turned off in between, the VMCS was cleared.
 */
static bool is_as_left(const struct dune_vcpu *vcpu)
{
	const struct vcpu_hw *hw = vcpu->hw;

	return vcpu->resumed && vcpu->epoch == hw->left_epoch &&
	       hw->cpu == smp_processor_id() && this_cpu_read(vmx_current_here) == hw &&
	       !hw->lists_msrs &&
	       !(hw->pending & (VMX_PENDING_CPU | VMX_PENDING_ACTIVATE | VMX_PENDING_MSRS)) &&
	       !static_branch_unlikely(&virt_kvm_loaded);
}

/* Implements @load of struct vcpu_ops. */
void vmx_vcpu_load(struct dune_vcpu *vcpu, bool migrated)
{
	struct vcpu_hw *hw = vcpu->hw;

	lockdep_assert_irqs_disabled();
	if (is_as_left(vcpu)) {
		msr_write(MSR_KERNEL_GS_BASE, hw->kernel_gs_base);
		hw->switched = true;
		vmx_load_msrs(hw);
		return;
	}
	ibpb_if_kvm_has_vmcs();
	hw->pending |= VMX_PENDING_HOST;
	if (migrated)
		hw->pending |= VMX_PENDING_CPU;
	/* The host is still saved if there was no other thread to switch to. */
	if (!hw->switched)
		vmx_host_save(hw);
	vmx_choose_msrs(hw);
}

/*
 * Implements @put of struct vcpu_ops.
 *
 * Gives the CPU back to the host: the MSRs, the host's state, and predictions if KVM has a
 * VMCS here. The guest's registers are read while the VMCS is on this CPU.
 */
void vmx_vcpu_put(struct dune_vcpu *vcpu)
{
	struct vcpu_hw *hw = vcpu->hw;

	lockdep_assert_irqs_disabled();
	hw->left_epoch = vcpu->epoch;
	if (hw->msrs_loaded)
		vmx_restore_msrs(hw);
	if (hw->switched) {
		vmx_host_restore(hw);
		vmx_read_last_regs(hw);
		ibpb_if_kvm_has_vmcs();
	}
	/* Also if an earlier @put read them: the exit was handled, perhaps skipped, after it. */
	if (!(hw->pending & VMX_PENDING_UNREAD))
		vmx_skip_in_regs(hw);
}

/*
 * Implements @cpu_off of struct vcpu_ops.
 *
 * Virtualization is about to be turned off on this CPU, and the VMCSs that are active here would
 * be lost (SDM 25.11.1). If a run is under way here, its guest's system-call MSRs are in the CPU;
 * KVM, which may be the reason, would save the values that it finds there as the host's.
 */
void vmx_host_cpu_off(void)
{
	struct vcpu_hw *hw;

	lockdep_assert_irqs_disabled();
	while ((hw = vmx_active_here())) {
		if (hw->msrs_loaded)
			vmx_restore_msrs(hw);
		vmx_read_and_deactivate(hw);
	}
}

/**
 * vmx_set_msr() - the guest writes one of its system-call MSRs
 * @hw:		the vCPU's
 * @msr:	its number
 * @value:	what the guest writes
 *
 * Context: process, interrupts on.
 * Return: 0, or -EPERM if the guest gets #GP: the MSR is not one of them, or the
 * processor refuses the value.
 */
int vmx_set_msr(struct vcpu_hw *hw, u32 msr, u64 value)
{
	int i, err;
	u64 found;

	for (i = 0; i < VMX_MSRS; i++)
		if (vmx_msr_numbers[i] == msr)
			break;
	if (i == VMX_MSRS)
		return -EPERM;
	local_irq_disable();
	found = msr_read(msr);
	/* The processor decides whether the value is allowed. */
	err = wrmsrq_safe(msr, value);
	if (!err) {
		hw->msrs[i] = value;
		list_msrs(hw);
		hw->pending |= VMX_PENDING_MSRS;
	}
	/* The value that was found is that of the host or of a KVM guest. */
	if (!hw->msrs_loaded)
		wrmsrq(msr, found);
	local_irq_enable();
	return err ? -EPERM : 0;
}
