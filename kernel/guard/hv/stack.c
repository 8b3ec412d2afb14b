// SPDX-License-Identifier: GPL-2.0-only
/*
 * The stack on which a module of class D works: the kernel's, at the kernel's address, but found as
 * M finds it. The page table that the kernel has loaded may lead elsewhere, to a return address by
 * which M does not return.
 */
#include <linux/types.h>

#include "guard/hv/views.h"

bool hv_stack_walk(struct hv_cpu *cpu, u64 address)
{
	struct hv_walk *new = &cpu->walk;
	u64 physical, value, entry, offsets;
	bool is_kernels;
	u32 shift;

	new->page = HV_NOWHERE;
	if (address & 7 || hv_index(address, HV_SHIFT_TOP) < HV_KERNEL_HALF ||
	    !hv_space_entry(cpu, address, &entry, &shift))
		return false;
	/* All of the way but the top level is the kernel's: then it is remembered. */
	is_kernels = shift == HV_SHIFT_TOP;
	if (shift == HV_SHIFT_PAGE || (!is_kernels && entry & HV_PTE_LARGE)) {
		offsets = BIT_ULL(shift) - 1;
		physical = (entry & HV_ADDRESS & ~offsets) | (address & offsets);
	} else if (!hv_walk_from(entry, shift - HV_SHIFT_STEP, address, &physical,
				 is_kernels ? new : NULL)) {
		return false;
	}
	if (!hv_walk_entry(physical, &value))
		return false;
	new->page = is_kernels ? address & ~(HV_PAGE - 1) : HV_NOWHERE;
	new->distance = physical - address;
	return true;
}
