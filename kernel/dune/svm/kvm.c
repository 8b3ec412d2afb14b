// SPDX-License-Identifier: GPL-2.0-only
/*
 * SVM while KVM is loaded (virt/kvm.c): these parts of a CPU's state belong to KVM, and an
 * entry leaves them as it found them.
 *
 *  - EFER.SVME: each entry tests it (svm_virt_test_and_turn_on()).
 *  - VM_HSAVE_PA, the page to which VMRUN saves the host. In the part of that page that
 *    VMRUN does not use, KVM keeps what VMLOAD must restore for it: from the time that one
 *    of its threads is scheduled in until that thread has left its guest. No KVM thread
 *    is between these two while a Dune thread runs, so an entry uses KVM's page as it is.
 *  - ASIDs: svm_tag_share() and svm_kvm_put().
 *  - TSC_RATIO: KVM leaves its last guest's, and records it (current_tsc_ratio).
 */
#include <linux/gfp.h>
#include <linux/lockdep.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <asm/cpufeature.h>
#include <asm/mem_encrypt.h>

#include "dune/svm/svm.h"
#include "virt/svm.h"
#include "x86/msr.h"

/*
 * A guest that executes nothing: its second-level page table is empty, so its first
 * fetch ends it. VMRUN carries out the TLB command when it has accepted the state,
 * before the first instruction (APM vol. 3, VMRUN).
 */
static DEFINE_PER_CPU(void *, flush_vmcb);
static void *empty_table;

/*
 * A vCPU may have left entries under the shared ASID. Used only on that CPU, with interrupts
 * off.
 */
static DEFINE_PER_CPU(bool, left_entries);

/* Makes @vmcb that of the guest, also after VMRUN has refused it. For any context. */
static void make_flush_guest(struct vmcb *vmcb)
{
	svm_set_intercepts(&vmcb->control);
	vmcb->control.asid = tags_highest();
	vmcb->control.misc_ctl = SVM_MISC_ENABLE_NP;
	vmcb->control.nested_cr3 = __sme_pa(empty_table);
	vmcb->control.int_ctl = V_INTR_MASKING_MASK;
	vmcb->control.tlb_ctl = svm_flush_command();
	svm_reset_state(vmcb, guest_cr4(false));
}

/*
 * Makes the guest of each CPU that flushes the shared ASID. Called at load, after
 * svm_intercepts_init(); may sleep. Returns 0 or -ENOMEM; svm_kvm_cleanup() must follow in either
 * case.
 */
int svm_kvm_init(void)
{
	int cpu;

	empty_table = (void *)get_zeroed_page(GFP_KERNEL);
	if (!empty_table || svm_virt_alloc_cpu_pages(&flush_vmcb))
		return -ENOMEM;
	for_each_possible_cpu(cpu)
		make_flush_guest(per_cpu(flush_vmcb, cpu));
	return 0;
}

/* Frees what svm_kvm_init() allocated, also if svm_kvm_init() failed. */
void svm_kvm_cleanup(void)
{
	svm_virt_free_cpu_pages(&flush_vmcb);
	free_page((unsigned long)empty_table);
	empty_table = NULL;
}

/*
 * Flushes the shared ASID on this CPU. Interrupts are off. Returns whether VMRUN was accepted, and
 * so has flushed.
 */
static bool flush_shared_asid(void)
{
	struct vmcb *vmcb = this_cpu_read(flush_vmcb);

	vmcb->control.clean = 0;
	vmrun_nothing(__sme_pa(vmcb));
	exit_restore_dr7();
	if (likely((u32)vmcb->control.exit_code != (u32)SVM_EXIT_ERR))
		return true;
	make_flush_guest(vmcb);
	return false;
}

/*
 * The thread is about to be switched away from, or to leave DUNE_RUN. Interrupts are off.
 *
 * KVM may give the shared ASID to one of its guests without a flush, as soon as another
 * thread runs here: no entries of our guest may be left under it. If KVM has
 * virtualization off now, or is about to turn it on or off (svm_virt_borrow()), it will
 * flush everything when it has turned it on (svm_hardware_enable(), later
 * svm_enable_virtualization_cpu()). A flush that was refused is repeated the next time.
 */
void svm_kvm_put(void)
{
	lockdep_assert_irqs_disabled();
	if (!this_cpu_read(left_entries))
		return;
	if (!(msr_read(MSR_EFER) & EFER_SVME) || !msr_read(MSR_VM_HSAVE_PA) || flush_shared_asid())
		this_cpu_write(left_entries, false);
}

/*
 * After a context switch, when the host's state was saved: learns what KVM has left in this CPU.
 * Interrupts are off until the entry that follows.
 */
void svm_kvm_load(struct vcpu_hw *hw)
{
	lockdep_assert_irqs_disabled();
	hw->has_kvm_tsc_ratio = boot_cpu_has(X86_FEATURE_TSCRATEMSR) &&
				msr_read(MSR_AMD64_TSC_RATIO) != SVM_TSC_RATIO_DEFAULT;
	svm_tag_share(hw);
	this_cpu_write(left_entries, true);
}
