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

#include "guard/hv/hv.h"
#include "x86/svm/vmcb.h"

/* An instruction has 15 bytes at most, and two of them are no prefixes. */
#define MOST_PREFIXES	13

/* Returns the bytes before 0Fh, with which all instructions begin that are skipped (hv_skip()). */
u32 hv_prefixes(struct hv_cpu *cpu)
{
	const struct vmcb_save_area *save = &hv_vmcb(cpu)->save;
	u32 i, count = 0;
	u64 word, at;

	for (i = 0; i <= MOST_PREFIXES; i++) {
		at = save->rip + i;
		if (!hv_walk_read(save->cr3, at & ~7ULL, &word))
			break;
		if ((word >> 8 * (at & 7) & 0xff) == 0x0f) {
			count = i;
			break;
		}
	}
	return count;
}
