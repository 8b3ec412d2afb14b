// SPDX-License-Identifier: GPL-2.0-only
/*
 * The guest's memory by linear addresses: its page table, walked by software. Another CPU may
 * change that meanwhile, and the guest may have made it of anything. So no entry is followed to the
 * guard's memory, to what is hidden from the guest, or to a device.
 */
#include <linux/types.h>

#include "guard/hv/views.h"

#define TOP_SHIFT	39	/* four levels: a kernel with five is not launched */
#define LEAF_SHIFT	12	/* of a page table's entries */

bool hv_walk_entry(u64 physical, u64 *value)
{
	if (!hv_is_memory(physical) || hv_is_guards(physical) || hv_nested_is_private(physical))
		return false;
	*value = *(u64 *)hv_guest_memory(physical);
	return true;
}

bool hv_walk(u64 cr3, u64 address, u64 *physical)
{
	u64 entry = cr3, offsets;
	int shift = TOP_SHIFT;

	for (;; shift -= 9) {
		if (!hv_walk_entry((entry & HV_ADDRESS) + hv_index(address, shift) * 8, &entry) ||
		    !(entry & HV_PTE_PRESENT))
			return false;
		if (shift == LEAF_SHIFT || (shift < TOP_SHIFT && entry & HV_PTE_LARGE))
			break;
	}
	offsets = BIT_ULL(shift) - 1;
	*physical = (entry & HV_ADDRESS & ~offsets) | (address & offsets);
	return true;
}

bool hv_walk_read(u64 cr3, u64 address, u64 *value)
{
	u64 physical;

	/* The 8 bytes are in one page. */
	return !(address & 7) && hv_walk(cr3, address, &physical) &&
	       hv_walk_entry(physical, value);
}
