// SPDX-License-Identifier: GPL-2.0-only
/*
 * The prefixes of the guest's instruction, for processors that do not report where it ends (CPUID
 * 8000000Ah, EDX bit 3: all but the first with nested paging do, and QEMU does not). The guest's
 * page table leads to its bytes. Another CPU may change both meanwhile: the guest then continues
 * somewhere in its own code, which the other CPU could have changed as well.
 *
 * Nothing is read that the guest cannot read, and of what was read it learns where 0Fh is.
 */
#include <linux/types.h>
#include <asm/svm.h>

#include "guard/hv/hv.h"

#define ENTRY_PRESENT	BIT_ULL(0)
#define ENTRY_LARGE	BIT_ULL(7)

#define TOP_SHIFT	39	/* four levels: a kernel with five is not launched */
#define LEAF_SHIFT	12	/* of a page table's entries */

/* An instruction has 15 bytes at most, and two of them are no prefixes. */
#define MOST_PREFIXES	13

/* Reads 8 bytes of the guest's memory. What is hidden from the guest reads as zeros. */
static u64 read(u64 physical)
{
	physical &= ~7ULL;
	if (physical >= hv_config.end || hv_is_guards(physical) || hv_nested_hides(physical))
		return 0;
	return *(u64 *)hv_guest_memory(physical);
}

bool hv_translate(u64 cr3, u64 address, u64 *physical)
{
	u64 entry = cr3, offsets;
	int shift = TOP_SHIFT;

	for (;; shift -= 9) {
		entry = read((entry & HV_ADDRESS) + (address >> shift & 0x1ff) * 8);
		if (!(entry & ENTRY_PRESENT))
			return false;
		if (shift == LEAF_SHIFT || (shift < TOP_SHIFT && entry & ENTRY_LARGE))
			break;
	}
	offsets = BIT_ULL(shift) - 1;
	*physical = (entry & HV_ADDRESS & ~offsets) | (address & offsets);
	return true;
}

/* Returns the bytes before 0Fh, with which all instructions begin that are skipped (hv_skip()). */
u32 hv_prefixes(struct hv_cpu *cpu)
{
	const struct vmcb_save_area *save = &hv_vmcb(cpu)->save;
	u32 i, count = 0;
	u64 physical;

	for (i = 0; i <= MOST_PREFIXES && hv_translate(save->cr3, save->rip + i, &physical); i++) {
		if ((read(physical) >> 8 * (physical & 7) & 0xff) == 0x0f) {
			count = i;
			break;
		}
	}
	return count;
}
