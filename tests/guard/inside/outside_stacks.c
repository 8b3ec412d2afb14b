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

#include "guard/linux/views.h"
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

#define LEVELS	4
#define WORD	(PAGE_SIZE / 16)	/* of a stack: where the return address is */

/*
 * Two pages for a stack at one address: M is to return by the real one, into its text, and the
 * guard to read the one that is shown, which has a return address in the kernel. Page tables lead
 * to each, of which those of the other one than Linux's are our own.
 */
struct stacks {
	u64 at;
	u64 *real, *shown;
	u64 *tables[LEVELS];
};

static void fill(struct stacks *stacks, const struct inside *inside)
{
	stacks->real[WORD] = call_of_counter(inside);
	stacks->real[WORD + 2] = (u64)outside_landing;
	stacks->shown[WORD] = (u64)outside_landing;
}

/* Copies of the tables on the way to stacks->at lead to @other. Returns false without memory. */
static bool lead_to(struct stacks *stacks, const u64 *other)
{
	u64 at = stacks->at, root = __read_cr3();
	u32 index[] = { pgd_index(at), pud_index(at), pmd_index(at), pte_index(at) }, i;
	u64 *entry = &root;

	for (i = 0; i < LEVELS; i++) {
		stacks->tables[i] = own_table(entry);
		if (!stacks->tables[i])
			return false;
		entry = &stacks->tables[i][index[i]];
	}
	*entry = __pa(other) | (*entry & ~PTE_PFN_MASK & ~_PAGE_GLOBAL);
	return true;
}

static void free_stacks(struct stacks *stacks)
{
	u32 i;

	for (i = 0; i < LEVELS; i++)
		free_page((unsigned long)stacks->tables[i]);
}

static u64 enter(const struct inside *inside, u64 at, u64 cr3)
{
	return outside_on_other_stack(inside->nothing, HV_CALL + HV_CALL_COUNTER, at + WORD * 8,
				      cr3);
}

/* A page table of our own leads to the stack that is shown. Without memory it returns ~0. */
static u64 by_page_table(const struct inside *inside)
{
	struct stacks stacks = {
		.at = (u64)vzalloc(PAGE_SIZE), .shown = (u64 *)get_zeroed_page(GFP_KERNEL),
	};
	unsigned long flags;
	u64 rax = ~0ULL;

	if (!stacks.at || !stacks.shown || !lead_to(&stacks, stacks.shown))
		goto out;
	stacks.real = page_address(vmalloc_to_page((void *)stacks.at));
	fill(&stacks, inside);
	local_irq_save(flags);
	flush_all();
	rax = gain(enter(inside, stacks.at, __pa(stacks.tables[0])));
	flush_all();
	local_irq_restore(flags);
out:
	free_stacks(&stacks);
	free_page((unsigned long)stacks.shown);
	vfree((void *)stacks.at);
	return rax;
}

/* Tables for @at, and a top level like Linux's that leads to them and to @page. */
static bool make_tables(struct stacks *stacks, const u64 *page)
{
	u64 at = stacks->at, *entry = NULL;
	u32 index[] = { pgd_index(at), pud_index(at), pmd_index(at), pte_index(at) }, i;

	for (i = 0; i < LEVELS; i++) {
		stacks->tables[i] = (u64 *)get_zeroed_page(GFP_KERNEL);
		if (!stacks->tables[i])
			return false;
		if (entry)
			*entry = __pa(stacks->tables[i]) | _KERNPG_TABLE;
		entry = &stacks->tables[i][index[i]];
	}
	*entry = __pa(page) | (pgprot_val(PAGE_KERNEL) & ~_PAGE_GLOBAL);
	for (i = 0; i < PTRS_PER_PGD; i++)
		if (i != index[0])
			stacks->tables[0][i] = ((u64 *)__va(read_cr3_pa()))[i];
	return true;
}

/*
 * An entry of the top level that was empty at launch leads to the stack that is shown, which the
 * guard may remember, and then to the real one.
 */
static u64 by_empty_entry(const struct inside *inside)
{
	struct stacks one = { .shown = (u64 *)get_zeroed_page(GFP_KERNEL) }, other = {};
	const u64 *top = __va(read_cr3_pa());
	unsigned long flags;
	u64 rax = ~0ULL;
	u32 i;

	for (i = PTRS_PER_PGD / 2; i < PTRS_PER_PGD && top[i]; i++)
		;
	one.at = ~0ULL << 48 | (u64)i << PGDIR_SHIFT;
	other.at = one.at;
	one.real = (u64 *)get_zeroed_page(GFP_KERNEL);
	if (i == PTRS_PER_PGD || !one.real || !one.shown || !make_tables(&one, one.shown) ||
	    !make_tables(&other, one.real))
		goto out;
	fill(&one, inside);
	local_irq_save(flags);
	enter(inside, one.at, __pa(one.tables[0]));
	rax = gain(enter(inside, one.at, __pa(other.tables[0])));
	flush_all();
	local_irq_restore(flags);
out:
	free_stacks(&one);
	free_stacks(&other);
	free_page((unsigned long)one.real);
	free_page((unsigned long)one.shown);
	return rax;
}

/* Another module's text is said to be at @address, in these frames, and its init after it. */
static s64 load_junk(u64 number, u64 address, const void *text, const void *init)
{
	struct hv_load *load = (void *)get_zeroed_page(GFP_KERNEL);
	s64 err;

	if (!load)
		return -ENOMEM;
	load->regions[CONTENT_TEXT].address = address;
	load->regions[CONTENT_TEXT].size = PAGE_SIZE;
	load->regions[CONTENT_INIT_TEXT].address = address + PAGE_SIZE;
	load->regions[CONTENT_INIT_TEXT].size = PAGE_SIZE;
	load->frames[0] = __pa(text);
	load->frames[1] = __pa(init);
	err = outside_guard_call(HV_CALL_LOAD, number, __pa(load));
	free_page((unsigned long)load);
	return err;
}

/*
 * The stack that is shown is remembered. Then another module is loaded in the same 512 GB, which
 * fails, while a page table of our own leads to the real one: the guard's tables for M are made of
 * that.
 */
static u64 by_failed_load(const struct inside *inside, u64 number)
{
	struct stacks stacks = {
		.at = (u64)vzalloc(PAGE_SIZE), .real = (u64 *)get_zeroed_page(GFP_KERNEL),
	};
	void *junk = (void *)__get_free_pages(GFP_KERNEL | __GFP_ZERO, 1);
	u64 cr3 = __read_cr3(), rax = ~0ULL;
	unsigned long flags;
	s64 err;

	if (!stacks.at || !stacks.real || !junk || !lead_to(&stacks, stacks.real))
		goto out;
	stacks.shown = page_address(vmalloc_to_page((void *)stacks.at));
	fill(&stacks, inside);
	local_irq_save(flags);
	enter(inside, stacks.at, cr3);
	native_write_cr3(__pa(stacks.tables[0]));
	err = load_junk(number, (stacks.at & PGDIR_MASK) + PGDIR_SIZE / 2, junk, junk + PAGE_SIZE);
	native_write_cr3(cr3);
	flush_all();
	rax = gain(enter(inside, stacks.at, cr3));
	local_irq_restore(flags);
	/* It was to fail. */
	if (err != -EADDRINUSE)
		rax = ~0ULL;
out:
	free_stacks(&stacks);
	free_page((unsigned long)stacks.real);
	free_pages((unsigned long)junk, 1);
	vfree((void *)stacks.at);
	return rax;
}

/*
 * The stack is in a frame that is frozen as another module's text: what we write then is in the
 * shadow, which M reads, and not in the frame.
 */
static u64 by_frozen_frame(const struct inside *inside, u64 number)
{
	u64 *pages = (u64 *)__get_free_pages(GFP_KERNEL | __GFP_ZERO, 2), rax = ~0ULL;
	u64 *stack = (void *)pages + PAGE_SIZE, at = (u64)vmalloc(PAGE_SIZE);
	unsigned long flags;

	if (!pages || !at)
		goto out;
	/* Return thunks push a word, for which M has only the page below. */
	stack[0] = (u64)outside_landing;
	if (load_junk(number, (at & PGDIR_MASK) + PGDIR_SIZE / 2, stack, (void *)stack + PAGE_SIZE))
		goto out;
	on_each_cpu(outside_flush_guard, NULL, 1);
	WRITE_ONCE(stack[0], call_of_counter(inside));
	WRITE_ONCE(stack[2], (u64)outside_landing);
	local_irq_save(flags);
	rax = gain(outside_on_other_stack(inside->nothing, HV_CALL + HV_CALL_COUNTER, (u64)stack,
					  __read_cr3()));
	local_irq_restore(flags);
	guard_views_disarm(number);
out:
	free_pages((unsigned long)pages, 2);
	vfree((void *)at);
	return rax;
}

bool outside_return(const struct inside *inside, const char *word, u64 a, u64 *result)
{
	if (!strcmp(word, "return-by-leaf"))
		*result = by_leaf(inside, a);
	else if (!strcmp(word, "return-by-table"))
		*result = by_page_table(inside);
	else if (!strcmp(word, "return-by-slot"))
		*result = by_empty_entry(inside);
	else if (!strcmp(word, "return-by-load"))
		*result = by_failed_load(inside, a);
	else if (!strcmp(word, "return-by-frame"))
		*result = by_frozen_frame(inside, a);
	else
		return false;
	return true;
}
