// SPDX-License-Identifier: GPL-2.0-only
/*
 * Entries on stacks with which a hostile kernel wants M to return to places of its choice, without
 * a border. Where that succeeds, M executes a VMMCALL of the module's that is no entry point.
 */
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <asm/tlbflush.h>

#include "guard/hv/hv.h"
#include "outside.h"

/* Above the return address, on which the entry is called. */
#define WORDS	8

/* outside_stacks_code.S: calls @function with that stack and RAX; returns its RAX. */
u64 outside_on_stack(const void *function, u64 rax, const u64 words[WORDS]);
u64 outside_on_other_stack(const void *function, u64 rax, u64 rsp, u64 cr3);
extern const char outside_landing[];

/* The VMMCALL of enter_counter(), which gives the number of its calls. It pops RBX afterwards. */
static u64 call_of_counter(const struct inside *inside)
{
	const u8 *at = (const u8 *)inside->counter;
	u32 i;

	for (i = 0; i < 64; i++)
		if (at[i] == 0x0f && at[i + 1] == 0x01 && at[i + 2] == 0xd9)
			return (u64)at + i;
	return 0;
}

/* What the counter has given, or 0: RAX of a call that failed is an error, or was not made. */
static u64 gain(u64 rax)
{
	return (s64)rax > 0 && rax < HV_CALL ? rax : 0;
}

/* The entry returns to a return of the kernel's that M executes, the leaf, and that to the text. */
static u64 by_leaf(const struct inside *inside, u64 leaf)
{
	u64 words[WORDS] = { leaf, call_of_counter(inside), 0, (u64)outside_landing };
	unsigned long flags;
	u64 rax;

	local_irq_save(flags);
	rax = outside_on_stack(inside->nothing, HV_CALL + HV_CALL_COUNTER, words);
	local_irq_restore(flags);
	return gain(rax);
}

static void flush_all(void)
{
	u64 cr4 = native_read_cr4();

	asm volatile("mov %0, %%cr4" : : "r" (cr4 & ~X86_CR4_PGE) : "memory");
	asm volatile("mov %0, %%cr4" : : "r" (cr4) : "memory");
}

/* A copy of the page table to which *@entry leads, which then leads there. */
static u64 *own_table(u64 *entry)
{
	u64 *table = (u64 *)get_zeroed_page(GFP_KERNEL);

	if (!table)
		return NULL;
	memcpy(table, __va(*entry & PTE_PFN_MASK), PAGE_SIZE);
	*entry = __pa(table) | (*entry & ~PTE_PFN_MASK);
	return table;
}

/*
 * A page table of our own leads to another stack than that of M: the guard would read a return
 * address in the kernel, and M one in its text. Without memory it returns ~0.
 */
static u64 by_page_table(const struct inside *inside)
{
	u64 cr3 = __read_cr3(), root = cr3, at = (u64)vzalloc(PAGE_SIZE);
	u64 *shown = (u64 *)get_zeroed_page(GFP_KERNEL), *real, *tables[4] = {}, rax = ~0ULL;
	u32 index[4] = { pgd_index(at), pud_index(at), pmd_index(at), pte_index(at) }, i;
	const u32 word = PAGE_SIZE / 16;
	unsigned long flags;

	if (!at || !shown)
		goto out;
	real = page_address(vmalloc_to_page((void *)at));
	for (i = 0; i < 4; i++) {
		tables[i] = own_table(i ? &tables[i - 1][index[i - 1]] : &root);
		if (!tables[i])
			goto out;
	}
	tables[3][index[3]] = __pa(shown) | (tables[3][index[3]] & ~PTE_PFN_MASK & ~_PAGE_GLOBAL);
	real[word] = call_of_counter(inside);
	real[word + 2] = (u64)outside_landing;
	shown[word] = (u64)outside_landing;
	local_irq_save(flags);
	flush_all();
	rax = outside_on_other_stack(inside->nothing, HV_CALL + HV_CALL_COUNTER, at + word * 8,
				     __pa(tables[0]));
	flush_all();
	local_irq_restore(flags);
	rax = gain(rax);
out:
	for (i = 0; i < 4; i++)
		free_page((unsigned long)tables[i]);
	free_page((unsigned long)shown);
	vfree((void *)at);
	return rax;
}

bool outside_return(const struct inside *inside, const char *word, u64 a, u64 *result)
{
	if (!strcmp(word, "return-by-leaf"))
		*result = by_leaf(inside, a);
	else if (!strcmp(word, "return-by-table"))
		*result = by_page_table(inside);
	else
		return false;
	return true;
}
