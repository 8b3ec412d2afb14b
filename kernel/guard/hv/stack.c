// SPDX-License-Identifier: GPL-2.0-only
/*
 * The stack on which a module of class D works: the kernel's, at the kernel's address, but found as
 * M finds it, by its page table and by its nested page table. The page table that the kernel has
 * loaded may lead elsewhere, to a return address by which M does not return; and where a frame is
 * frozen, or has leaves, M reads other bytes than are in it.
 */
#include <linux/types.h>

#include "guard/hv/views.h"

/* Whether M has the entry at the top, and below it none of the guard's tables. */
static bool remember_top(struct hv_cpu *cpu, u64 address, u64 entry, u32 shift)
{
	u64 *place = &cpu->space[hv_index(address, HV_SHIFT_TOP)];

	cpu->walk.places[0] = place;
	cpu->walk.entries[0] = entry;
	return shift == HV_SHIFT_TOP && __atomic_load_n(place, __ATOMIC_RELAXED) == entry;
}

bool hv_stack_walk(struct hv_cpu *cpu, u64 view, u64 address)
{
	struct hv_walk *new = &cpu->walk;
	u64 physical, value, entry, offsets;
	bool remember;
	u32 shift;

	new->page = HV_NOWHERE;
	if (address & 7 || hv_index(address, HV_SHIFT_TOP) < HV_KERNEL_HALF ||
	    !hv_space_entry(cpu, address, &entry, &shift))
		return false;
	remember = remember_top(cpu, address, entry, shift);
	if (shift == HV_SHIFT_PAGE || (shift != HV_SHIFT_TOP && entry & HV_PTE_LARGE)) {
		offsets = BIT_ULL(shift) - 1;
		physical = (entry & HV_ADDRESS & ~offsets) | (address & offsets);
	} else if (!hv_walk_from(entry, shift - HV_SHIFT_STEP, address, &physical, view,
				 remember ? new : NULL)) {
		return false;
	}
	if (!hv_walk_entry(physical, &value) || !hv_nested_is_plain(view, physical))
		return false;
	new->page = remember ? address & ~(HV_PAGE - 1) : HV_NOWHERE;
	new->distance = physical - address;
	return true;
}
