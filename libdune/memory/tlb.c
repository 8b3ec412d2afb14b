// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * TLB control and the choice of the page table, for the calling thread.
 *
 * Entries of a tag may stay in the TLB while another tag is loaded, and then
 * INVLPG and a load of CR3 do not reach them (APM volume 2, 5.5.1). So a thread
 * that uses tags notes for each tag which state of which root its entries belong
 * to (dune_pt_state(), one number for both), and keeps them only for that state.
 */
#include "memory.h"
#include "tlb.h"

dune_pte *dune_pt_root(void)
{
	if (unlikely(!dune_active()))
		return NULL;
	return this_thread(root);
}

static bool have_tags(void)
{
	return dune_process.info.features & DUNE_FEATURE_PCID;
}

/* The entries of the loaded tag are those of the present state of the root. */
void dune_tlb_is_clean(void)
{
	struct dune_thread *t = dune_self();

	if (t->tags)
		t->tags[read_cr3() & CR3_TAG] = dune_pt_state(t->root);
}

/* From the first use of a tag on. Without tags dune_pt_protect() has a shorter path. */
static int use_tags(struct dune_thread *t)
{
	if (t->tags)
		return 0;
	t->tags = dune_page_alloc(TAG_PAGES);
	if (!t->tags)
		return -ENOMEM;
	WRITE_ONCE(t->last_table, NO_LAST_TABLE);
	dune_tlb_is_clean();
	return 0;
}

int dune_pt_load(dune_pte *root, unsigned int tag)
{
	struct dune_thread *t;
	u64 cr3, flags;

	if (!dune_active())
		return -EPERM;
	if (!root || ((u64)root & 0xfff) || (tag & ~(CR3_TAG | DUNE_PT_KEEP)))
		return -EINVAL;
	if (tag && !have_tags())
		return -EOPNOTSUPP;
	t = dune_self();
	if ((tag && use_tags(t)) || dune_pt_touch_core(root))
		return -ENOMEM;
	cr3 = to_gpa((u64)root) | (tag & CR3_TAG);
	flags = dune_irq_save();	/* a handler finds all or nothing */
	if ((tag & DUNE_PT_KEEP) && t->tags[tag & CR3_TAG] == dune_pt_state(root))
		cr3 |= CR3_KEEP;
	t->root = root;
	write_cr3(cr3);
	dune_tlb_is_clean();
	dune_irq_restore(flags);
	return 0;
}

void dune_tlb_page(u64 va)
{
	if (dune_active())
		invlpg(va);
}

void dune_tlb_all(void)
{
	if (dune_active())
		write_cr3(read_cr3());
}

static bool have_invpcid(void)
{
	u32 eax = 7, ebx, ecx = 0, edx;

	__asm__ volatile("cpuid"
			 : "+a" (eax), "=b" (ebx), "+c" (ecx), "=d" (edx));
	return ebx & 1U << 10;
}

int dune_tlb_tag(unsigned int tag)
{
	if (!dune_active())
		return -EPERM;
	if (tag > CR3_TAG)
		return -EINVAL;
	if (!have_tags() || !have_invpcid())
		return -EOPNOTSUPP;
	invpcid(INVPCID_TAG, tag, 0);
	return 0;
}
