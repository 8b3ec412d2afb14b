// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * TLB control and the choice of the page table, for the calling thread.
 */
#include "internal.h"
#include "tlb.h"

dune_pte *dune_pt_root(void)
{
	return dune_self()->root;
}

static int have_tags(void)
{
	return !!(dune_process.info.features & DUNE_FEATURE_PCID);
}

int dune_pt_load(dune_pte *root, unsigned int tag)
{
	u64 cr3 = to_gpa((u64)root) | (tag & CR3_TAG);
	u64 flags;

	if (((u64)root & 0xfff) || (tag & ~(CR3_TAG | DUNE_PT_KEEP)))
		return -EINVAL;
	if (tag && !have_tags())
		return -EOPNOTSUPP;
	if (tag & DUNE_PT_KEEP)
		cr3 |= CR3_KEEP;
	dune_pt_touch_core(root);
	flags = dune_irq_save();	/* a handler finds both or neither */
	dune_self()->root = root;
	write_cr3(cr3);
	dune_irq_restore(flags);
	return 0;
}

void dune_tlb_page(u64 va)
{
	invlpg(va);
}

void dune_tlb_all(void)
{
	write_cr3(read_cr3());
}

static int have_invpcid(void)
{
	u32 eax = 7, ebx, ecx = 0, edx;

	__asm__ volatile("cpuid"
			 : "+a" (eax), "=b" (ebx), "+c" (ecx), "=d" (edx));
	return !!(ebx & 1U << 10);
}

int dune_tlb_tag(unsigned int tag)
{
	if (tag > CR3_TAG)
		return -EINVAL;
	if (!have_tags() || !have_invpcid())
		return -EOPNOTSUPP;
	invpcid(INVPCID_TAG, tag, 0);
	return 0;
}
