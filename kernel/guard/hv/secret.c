// SPDX-License-Identifier: GPL-2.0-only
/*
 * M's memory in class S: one nested page table and one page table for all CPUs, which are constant
 * while the module is registered. Both have the module's own pages, and the tables themselves,
 * which only the processor reads. Nothing of the kernel's is linked or copied, so that no pointer
 * leads the module elsewhere, and no translation of Linux's needs to reach M.
 */
#include <linux/types.h>

#include "guard/hv/views.h"

static u64 *entry_of(const struct hv_guarded *guarded, u64 physical)
{
	return hv_nested_entry(guarded->view, physical, HV_SHIFT_PAGE);
}

/* A table at its own physical address, of which M has no mapping. */
static u64 *take(const struct hv_guarded *guarded)
{
	u64 *table = hv_pool_take(1);
	u64 *entry = table ? entry_of(guarded, hv_physical(table)) : NULL;

	if (entry) {
		*entry = hv_physical(table) | HV_NPT_WRITE | HV_NPT_NO_EXECUTE;
		return table;
	}
	if (table)
		hv_pool_give(table, 1);
	return NULL;
}

static bool map(struct hv_guarded *guarded, u64 address, const u64 *frames, u32 pages, u64 rights)
{
	u64 *table, *entry, *new;
	u32 shift;

	for (; pages; pages--, frames++, address += HV_PAGE) {
		table = guarded->space;
		for (shift = HV_SHIFT_TOP; shift > HV_SHIFT_PAGE; shift -= HV_SHIFT_STEP) {
			entry = &table[hv_index(address, shift)];
			if (!*entry) {
				new = take(guarded);
				if (!new)
					return false;
				*entry = hv_physical(new) | HV_PTE_TABLE;
			}
			table = hv_pointer(*entry & HV_ADDRESS);
		}
		table[hv_index(address, HV_SHIFT_PAGE)] = *frames | rights;
	}
	return true;
}

bool hv_secret_make(struct hv_guarded *guarded)
{
	const struct hv_registration *copy = guarded->copy;
	const struct hv_secret *secret = &copy->secret;
	const struct hv_range *constants = &copy->ranges[HV_RODATA];
	u64 *view = hv_pool_take(1), *entry;
	u32 i;

	if (!view)
		return false;
	guarded->view = hv_physical(view);
	guarded->space = take(guarded);
	for (i = 0; i < secret->exchange_pages; i++) {
		entry = entry_of(guarded, guarded->exchanges[i]);
		if (!entry)
			return false;
		*entry = guarded->exchanges[i] | HV_NPT_WRITE | HV_NPT_NO_EXECUTE;
	}
	return guarded->space &&
	       map(guarded, copy->text, guarded->frames, copy->text_pages, HV_PTE_TEXT) &&
	       map(guarded, constants->address, guarded->frames + copy->text_pages,
		   constants->pages, HV_PTE_CONSTANT) &&
	       map(guarded, secret->private, guarded->privates, copy->private_count,
		   HV_PTE_DATA) &&
	       map(guarded, secret->exchange, guarded->exchanges, secret->exchange_pages,
		   HV_PTE_DATA);
}

static void free_table(u64 *table, u32 shift)
{
	u32 i;

	for (i = 0; shift > HV_SHIFT_PAGE && i < HV_ENTRIES; i++)
		if (table[i])
			free_table(hv_pointer(table[i] & HV_ADDRESS), shift - HV_SHIFT_STEP);
	hv_pool_give(table, 1);
}

void hv_secret_free(struct hv_guarded *guarded)
{
	if (guarded->space)
		free_table(guarded->space, HV_SHIFT_TOP);
}

void hv_secret_open(struct hv_guarded *guarded, bool open)
{
	u64 rights;
	u32 i;

	for (i = 0; i < guarded->golden; i++) {
		rights = i < guarded->copy->text_pages ? HV_NPT_READ :
							 HV_NPT_READ | HV_NPT_NO_EXECUTE;
		__atomic_store_n(entry_of(guarded, guarded->frames[i]),
				 open ? guarded->frames[i] | rights : 0, __ATOMIC_RELEASE);
	}
	rights = HV_NPT_WRITE | HV_NPT_NO_EXECUTE;
	for (i = 0; i < guarded->copy->private_count; i++)
		__atomic_store_n(entry_of(guarded, guarded->privates[i]),
				 open ? guarded->privates[i] | rights : 0, __ATOMIC_RELEASE);
}

void hv_secret_clear_stack(const struct hv_guarded *guarded, u32 activation)
{
	u32 pages = guarded->copy->secret.stack_pages, i;
	const u64 *frame = &guarded->privates[activation * pages];

	for (i = 0; i < pages; i++)
		hv_clear_page(hv_guest_memory(frame[i]));
}
