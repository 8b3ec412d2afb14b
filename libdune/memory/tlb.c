// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * TLB control and the choice of the page table, for the calling thread.
 *
 * Entries of a PCID may stay in the TLB while another PCID is loaded, and then
 * INVLPG and a load of CR3 do not reach them (APM vol. 2, 5.5.1). So a thread
 * that uses PCIDs notes for each PCID which generation of which root its entries belong
 * to (generation_of(), one number for both), and keeps them only for that generation.
 */
#include "cpuid.h"
#include "table.h"
#include "thread.h"
#include "tlb.h"

dune_pte *dune_pt_root(void)
{
	if (unlikely(!dune_active()))
		return NULL;
	return this_thread(root);
}

static bool have_pcids(void)
{
	return dune_process.info.features & DUNE_FEATURE_PCID;
}

/* Notes that the entries of the loaded PCID are of the root's present generation. */
void dune_tlb_is_clean(void)
{
	struct dune_thread *t = dune_self();

	if (t->pcid_generations)
		t->pcid_generations[read_cr3() & CR3_PCID] = generation_of(t->root);
}

/*
 * Allocates @t's generations of PCIDs at its first use of one, and not earlier: without
 * them dune_pt_protect() has a shorter path. Returns 0 or -ENOMEM.
 */
static int use_pcids(struct dune_thread *t)
{
	if (t->pcid_generations)
		return 0;
	t->pcid_generations = dune_page_alloc(PCID_GENERATIONS_PAGES);
	if (!t->pcid_generations)
		return -ENOMEM;
	WRITE_ONCE(t->last_table, NO_LAST_TABLE);
	dune_tlb_is_clean();
	return 0;
}

int dune_pt_load(dune_pte *root, unsigned int pcid)
{
	struct dune_thread *t;
	u64 cr3, flags;

	if (!dune_active())
		return -EPERM;
	if (!root || ((u64)root & (PAGE - 1)) || (pcid & ~(CR3_PCID | DUNE_PT_KEEP)))
		return -EINVAL;
	if (pcid && !have_pcids())
		return -EOPNOTSUPP;
	t = dune_self();
	if (root != dune_process.root)
		dune_page_complete();
	if ((pcid && use_pcids(t)) || dune_pt_touch_core(root))
		return -ENOMEM;
	cr3 = table_gpa(root) | (pcid & CR3_PCID);
	flags = dune_irq_save();	/* a handler finds all or nothing */
	if ((pcid & DUNE_PT_KEEP) &&
	    t->pcid_generations[pcid & CR3_PCID] == generation_of(root))
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
	return cpuid(CPUID_FEATURES, 0).ebx & CPUID_7_EBX_INVPCID;
}

int dune_tlb_pcid(unsigned int pcid)
{
	if (!dune_active())
		return -EPERM;
	if (pcid > CR3_PCID)
		return -EINVAL;
	if (!have_pcids() || !have_invpcid())
		return -EOPNOTSUPP;
	invpcid(INVPCID_SINGLE, pcid, 0);
	return 0;
}
