// SPDX-License-Identifier: GPL-2.0-only
/* The kernel's page tables, and the memory of the guarded module through them. */
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/vmalloc.h>
#include <asm/pgtable.h>

#include "outside.h"

u64 outside_frame_of(unsigned long address)
{
	return page_to_phys(vmalloc_to_page((void *)address));
}

pte_t *outside_entry_of(unsigned long address)
{
	pgd_t *pgd = __va(read_cr3_pa());
	p4d_t *p4d;
	pud_t *pud;
	pmd_t *pmd;

	pgd += pgd_index(address);
	p4d = p4d_offset(pgd, address);
	pud = pud_offset(p4d, address);
	pmd = pmd_offset(pud, address);
	return pte_offset_kernel(pmd, address);
}

void outside_flush(void *unused)
{
	u64 cr3 = __read_cr3(), cr4 = native_read_cr4();

	asm volatile("mov %0, %%cr4" : : "r" (cr4 & ~X86_CR4_PGE) : "memory");
	asm volatile("mov %0, %%cr4" : : "r" (cr4) : "memory");
	asm volatile("mov %0, %%cr3" : : "r" (cr3) : "memory");
}

u8 outside_write_byte(const void *at, u8 value)
{
	struct page *page = vmalloc_to_page(at);
	u8 *alias = vmap(&page, 1, VM_MAP, PAGE_KERNEL), *byte, was;

	if (!alias)
		return 0;
	byte = alias + ((unsigned long)at & ~PAGE_MASK);
	was = *byte;
	WRITE_ONCE(*byte, value);
	vunmap(alias);
	return was;
}
