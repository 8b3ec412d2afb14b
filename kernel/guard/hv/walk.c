// SPDX-License-Identifier: GPL-2.0-only
/*
 * The guest's memory by linear addresses: its page table, walked by software. Another CPU may
 * change that meanwhile, and the guest may have made it of anything. So no entry is followed to the
 * guard's memory, to what is hidden from the guest, or to a device.
 */
#include <linux/types.h>

#include "guard/hv/views.h"

bool hv_walk_entry(u64 physical, u64 *value)
{
	if (!hv_is_memory(physical) || hv_is_guards(physical) || hv_nested_is_private(physical))
		return false;
	*value = *(u64 *)hv_guest_memory(physical);
	return true;
}

bool hv_walk_from(u64 entry, u32 shift, u64 address, u64 *physical, u64 view,
		  struct hv_walk *remember)
{
	u64 offsets, place;
	u32 level;

	for (level = 1;; level++, shift -= HV_SHIFT_STEP) {
		place = (entry & HV_ADDRESS) + hv_index(address, shift) * 8;
		if (!hv_walk_entry(place, &entry) || !(entry & HV_PTE_PRESENT) ||
		    (view && !hv_nested_is_plain(view, place)))
			return false;
		if (remember) {
			remember->places[level] = hv_guest_memory(place);
			remember->entries[level] = entry;
		}
		if (shift == HV_SHIFT_PAGE || (shift < HV_SHIFT_TOP && entry & HV_PTE_LARGE))
			break;
	}
	for (level++; remember && level < HV_WALKED; level++) {
		remember->places[level] = hv_guest_memory(place);
		remember->entries[level] = entry;
	}
	offsets = BIT_ULL(shift) - 1;
	*physical = (entry & HV_ADDRESS & ~offsets) | (address & offsets);
	return true;
}

bool hv_walk(u64 cr3, u64 address, u64 *physical)
{
	return hv_walk_from(cr3, HV_SHIFT_TOP, address, physical, 0, NULL);
}

bool hv_walk_read(u64 cr3, u64 address, u64 *value)
{
	u64 physical;

	/* The 8 bytes are in one page. */
	return !(address & 7) && hv_walk(cr3, address, &physical) &&
	       hv_walk_entry(physical, value);
}
