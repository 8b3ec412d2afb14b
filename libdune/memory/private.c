// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Private memory (DUNE_ADD_PRIVATE in <linux/dune.h>): pages that only the guest reaches. All that
 * an address space can have lies within one gigabyte of guest-physical addresses. It is mapped,
 * for ring 0 alone, at one place in the upper half of the linear addresses, where no program has
 * an address: so nothing of it is in the program's way.
 */
#include "table.h"

/* The first address of the upper half, which is that of entry 256 of a root. */
#define PRIVATE_BASE	0xffff800000000000ULL

/* Makes the entry in @root, if private memory is mapped. Returns 0 or -ENOMEM. */
int dune_private_touch(dune_pte *root)
{
	dune_pte *top = &root[level_index(PRIVATE_BASE, PT_TOP)], *t, *pages;
	u64 v = dune_process.private_gpa | DUNE_PTE_P | DUNE_PTE_W | DUNE_PTE_A | DUNE_PTE_D |
		DUNE_PTE_PS | DUNE_PTE_NX;
	int i;

	if (dune_process.private_gpa == NO_GPA || READ_ONCE(*top))
		return 0;
	t = dune_table_new();
	if (!t)
		return -ENOMEM;
	if (dune_process.have_1g) {
		t[0] = v;
		WRITE_ONCE(*top, link_to(t) & ~DUNE_PTE_U);
		return 0;
	}
	pages = dune_table_new();
	if (!pages) {
		dune_table_free(t);
		return -ENOMEM;
	}
	for (i = 0; i < PT_ENTRIES; i++)
		pages[i] = v + i * level_size(1);
	t[0] = link_to(pages) & ~DUNE_PTE_U;
	WRITE_ONCE(*top, link_to(t) & ~DUNE_PTE_U);
	return 0;
}

/*
 * Maps the private memory in which @gpa is, in the first page table. Called once, outside the
 * guest. Returns 0 or -ENOMEM.
 */
int dune_private_show(u64 gpa)
{
	dune_process.private_gpa = gpa & ~(GB - 1);
	return dune_private_touch(dune_process.root);
}

/* Returns the address at which the guest finds @gpa of private memory. */
void *dune_private_at(u64 gpa)
{
	return (void *)(PRIVATE_BASE + (gpa - dune_process.private_gpa));
}
