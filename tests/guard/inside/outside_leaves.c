// SPDX-License-Identifier: GPL-2.0-only
/*
 * The large page of the kernel's around a leaf, which the guard divides for M. What M reads there,
 * and whether it executes there what is no leaf: the kernel loads the module with tables whose
 * large page around the leaf leads to the module's own frames. The commands are those of outside.c.
 */
#include <linux/gfp.h>
#include <linux/io.h>
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pgtable.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <asm/special_insns.h>

#include "guard/linux/views.h"
#include "outside.h"

static bool is_large(u64 address)
{
	unsigned int level = PG_LEVEL_NONE;

	return lookup_address(address, &level) && level == PG_LEVEL_2M;
}

/* How many pages in the same 2 MB as a leaf, but its own one, the module reads unlike us. */
static u64 read_near(const struct inside *inside, u64 leaf)
{
	u64 first = leaf & PMD_MASK, at, count = 0;

	for (at = first; at < first + PMD_SIZE; at += PAGE_SIZE)
		if (at != (leaf & PAGE_MASK))
			count += inside->read((const u64 *)at) != *(const u64 *)at;
	return count;
}

/* ---- another large page ---- */

/* Copies of the tables to the 2 MB of a leaf. */
#define LEVELS	3
static u64 *tables[LEVELS];
static u64 block;

static void forget(void)
{
	int i;

	for (i = 0; i < LEVELS; i++) {
		free_page((unsigned long)tables[i]);
		tables[i] = NULL;
	}
}

/* In the copies, the 2 MB around the leaf lead to those around the frame. Returns 0 or -errno. */
static int lead_block(u64 leaf, u64 frame)
{
	u64 *table = __va(read_cr3_pa()), *entry;
	int i;

	for (i = 0; i < LEVELS; i++) {
		tables[i] = (u64 *)get_zeroed_page(GFP_KERNEL);
		if (!tables[i]) {
			forget();
			return -ENOMEM;
		}
		memcpy(tables[i], table, PAGE_SIZE);
		entry = &tables[i][leaf >> (39 - 9 * i) & 511];
		table = __va(*entry & PTE_PFN_MASK);
		if (i)
			tables[i - 1][leaf >> (48 - 9 * i) & 511] =
				virt_to_phys(tables[i]) | _PAGE_TABLE;
	}
	*entry = (frame & PMD_MASK) | _PAGE_PRESENT | _PAGE_ACCESSED | _PAGE_PSE;
	block = leaf & PMD_MASK;
	return 0;
}

/* Nothing else in these 2 MB is executed meanwhile. */
static u64 use_copies(unsigned long *flags)
{
	u64 cr3;

	local_irq_save(*flags);
	cr3 = __read_cr3();
	native_write_cr3(virt_to_phys(tables[0]));
	return cr3;
}

static void use_own(u64 cr3, unsigned long flags)
{
	native_write_cr3(cr3);
	local_irq_restore(flags);
}

s64 outside_load_beside(u64 number, const struct hv_load *load, u64 frame, u64 leaf)
{
	unsigned long flags;
	s64 err;
	u64 cr3;

	/* M has the leaf itself in its page. */
	if ((leaf & ~PMD_MASK) >> PAGE_SHIFT == (frame & ~PMD_MASK) >> PAGE_SHIFT)
		return -EAGAIN;
	err = lead_block(leaf, frame);
	if (err)
		return err;
	cr3 = use_copies(&flags);
	err = outside_guard_call(HV_CALL_LOAD, number, virt_to_phys((void *)load));
	use_own(cr3, flags);
	on_each_cpu(outside_flush_guard, NULL, 1);
	err = err ?: outside_guard_call(HV_CALL_ARM, number, 0);
	if (err)
		forget();
	return err;
}

void outside_follow_beside(u64 number, unsigned long event)
{
	if (tables[0] && event == MODULE_STATE_LIVE)
		guard_views_release(number);
	if (tables[0] && event == MODULE_STATE_GOING) {
		guard_views_disarm(number);
		forget();
	}
}

/* The module calls a function of its own that is no entry, by its place near the leaf. */
static u64 call_beside(const struct inside *inside, u64 *private)
{
	u64 frame = page_to_phys(vmalloc_to_page(inside->store)), at, cr3, result;
	unsigned long flags;

	if (!tables[0])
		return -ENOENT;
	at = block | (frame & ~PMD_MASK) | ((u64)inside->store & ~PAGE_MASK);
	cr3 = use_copies(&flags);
	result = outside_call_store(inside, private, at);
	use_own(cr3, flags);
	return result;
}

bool outside_leaves(const struct inside *inside, u64 *private, const char *word, u64 a,
		    u64 *result)
{
	if (!strcmp(word, "is-large"))
		*result = is_large(a);
	else if (!strcmp(word, "read-near"))
		*result = read_near(inside, a);
	else if (!strcmp(word, "call-beside"))
		*result = call_beside(inside, private);
	else
		return false;
	return true;
}
