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
#define TABLE_SHIFT	9	/* from a level to the next one */

bool hv_walk_entry(u64 physical, u64 *value)
{
	if (!hv_is_memory(physical) || hv_is_guards(physical) || hv_nested_is_private(physical))
		return false;
	*value = *(u64 *)hv_guest_memory(physical);
	return true;
}

/*
 * From the table to which an entry leads, whose entries are of 2^@shift bytes. @remember: where to
 * put the places and entries, or NULL.
 */
static inline bool walk(u64 entry, int shift, u64 address, u64 *physical, struct hv_walk *remember)
{
	u64 offsets, place;
	u32 level;

	for (level = 0;; level++, shift -= TABLE_SHIFT) {
		place = (entry & HV_ADDRESS) + hv_index(address, shift) * 8;
		if (!hv_walk_entry(place, &entry) || !(entry & HV_PTE_PRESENT))
			return false;
		if (remember) {
			remember->places[level] = hv_guest_memory(place);
			remember->entries[level] = entry;
		}
		if (shift == LEAF_SHIFT || (shift < TOP_SHIFT && entry & HV_PTE_LARGE))
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
	return walk(cr3, TOP_SHIFT, address, physical, NULL);
}

bool hv_walk_read(u64 cr3, u64 address, u64 *value)
{
	u64 physical;

	/* The 8 bytes are in one page. */
	return !(address & 7) && hv_walk(cr3, address, &physical) &&
	       hv_walk_entry(physical, value);
}

bool hv_walk_first(struct hv_cpu *cpu, u64 address)
{
	u32 top = hv_index(address, TOP_SHIFT);
	struct hv_walk *new = &cpu->walk;
	u64 physical, value, entry;

	new->page = HV_NOWHERE;
	if (address & 7 || top < HV_KERNEL_HALF)
		return false;
	entry = hv_kernel_half[top - HV_KERNEL_HALF];
	if (!(entry & HV_PTE_PRESENT) ||
	    !walk(entry, TOP_SHIFT - TABLE_SHIFT, address, &physical, new) ||
	    !hv_walk_entry(physical, &value))
		return false;
	new->page = address & ~(HV_PAGE - 1);
	new->distance = physical - address;
	return true;
}
