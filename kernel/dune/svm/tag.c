// SPDX-License-Identifier: GPL-2.0-only
/*
 * A vCPU's TLB tag on SVM, its ASID (APM 15.16): from the CPU's pool
 * (virt/tag.h), or while KVM is loaded one that all vCPUs share.
 */
#include <linux/lockdep.h>
#include <asm/cpufeature.h>
#include <asm/processor.h>

#include "dune/svm/svm.h"

/*
 * The next VMRUN, which follows in any case and on this CPU, flushes every tag. If it is
 * refused, svm_tag_refused() asks again. Not inline: the tests count calls.
 */
static noinline void flush_all_asids(struct vcpu_hw *hw)
{
	tags_set_must_flush(false);
	hw->vmcb->control.tlb_ctl = TLB_CONTROL_FLUSH_ALL_ASID;
}

/* Gives the vCPU a fresh ASID of this CPU. Interrupts are off. */
static void take_asid(struct vcpu_hw *hw)
{
	tag_take(&hw->tag);
	hw->vmcb->control.asid = hw->tag.number;
	/* This CPU may have been off: then it caches nothing of the VMCB. */
	hw->vmcb->control.clean = 0;
}

/* Gives the vCPU a valid ASID. Called when its ASID may have ended: see tag_is_valid(). */
void svm_tag_load(struct vcpu_hw *hw, bool migrated)
{
	lockdep_assert_irqs_disabled();
	hw->shares_asid = false;
	if (migrated || !tag_is_valid(&hw->tag))
		take_asid(hw);
	if (tags_must_flush())
		flush_all_asids(hw);
}

/*
 * TLB_CONTROL acts only after the consistency checks (APM 15.5.1), so a VMRUN that
 * was refused has flushed nothing. It ends the run, and the next run on this CPU, of
 * any vCPU, begins with svm_tag_load().
 */
void svm_tag_refused(void)
{
	lockdep_assert_irqs_disabled();
	tags_set_must_flush(true);
}

/* Returns the command that flushes one ASID; a processor that has none flushes all of them. */
u8 svm_flush_command(void)
{
	return boot_cpu_has(X86_FEATURE_FLUSHBYASID) ?
	       TLB_CONTROL_FLUSH_ASID : TLB_CONTROL_FLUSH_ALL_ASID;
}

/*
 * While KVM is loaded, KVM hands out all ASIDs. It counts up from the lowest and flushes only when
 * it begins again (new_asid()), so all our vCPUs use the highest ASID. The next VMRUN flushes KVM's
 * entries under this ASID, and svm_kvm_put() flushes those that our guest leaves.
 */
void svm_tag_share(struct vcpu_hw *hw)
{
	struct vmcb_control_area *control = &hw->vmcb->control;

	lockdep_assert_irqs_disabled();
	control->asid = tags_highest();
	control->tlb_ctl = svm_flush_command();
	/* KVM may have turned virtualization off and on since. */
	control->clean = 0;
	hw->tag.generation = 0;
	hw->shares_asid = true;
}

/*
 * The next VMRUN flushes the vCPU's entries: by FLUSH_ASID, or by a fresh ASID on processors
 * without that command.
 */
void svm_tag_flush(struct vcpu_hw *hw)
{
	lockdep_assert_irqs_disabled();
	if (boot_cpu_has(X86_FEATURE_FLUSHBYASID) || hw->shares_asid)
		hw->vmcb->control.tlb_ctl = svm_flush_command();
	else
		take_asid(hw);
	if (!hw->shares_asid && tags_must_flush())
		flush_all_asids(hw);
}
