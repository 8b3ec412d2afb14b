// SPDX-License-Identifier: GPL-2.0-only
/*
 * A vCPU's TLB tag on VT-x, its VPID (SDM 29.1), from the CPU's pool
 * (virt/tag.h). All functions are for interrupts off.
 */
#include <linux/lockdep.h>

#include "dune/vmx/vmx.h"

/* Gives the vCPU a valid VPID. Returns whether it is another one than before. */
bool vmx_tag_take(struct vcpu_hw *hw)
{
	lockdep_assert_irqs_disabled();
	if (tag_is_valid(&hw->tag))
		return false;
	tag_take(&hw->tag);
	if (tags_must_flush()) {
		invept(VMX_EPT_EXTENT_GLOBAL, 0);
		tags_set_must_flush(false);
	}
	return true;
}

/*
 * Flushes all entries of this CPU's TLB that come from the vCPU's EPT, whatever their
 * VPID and PCID: also after a change to the guest's own page table.
 */
void vmx_tag_flush(const struct vcpu_hw *hw)
{
	lockdep_assert_irqs_disabled();
	invept(VMX_EPT_EXTENT_CONTEXT, hw->eptp);
}
