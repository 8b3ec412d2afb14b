// SPDX-License-Identifier: GPL-2.0-only
/*
 * The nested page tables of the views. Each begins as a copy of the top level of K's, whose entries
 * are marked as shared: they lead to tables of K's. On the way to an entry that is to be changed, a
 * shared table is copied, and a large page is divided. That an entry is not executable holds for
 * all below it, so that whole views need one bit in each entry of the top level; it moves down with
 * the copies.
 *
 * A table is complete before an entry leads to it, so that other CPUs may walk it meanwhile.
 */
#include <linux/types.h>

#include "guard/hv/views.h"

static u64 *table_of(u64 entry)
{
	return hv_pointer(entry & HV_ADDRESS);
}

static bool is_table(u64 entry, u32 shift)
{
	return entry & 1 && shift > 12 && !(entry & HV_NPT_LARGE);
}

/* What an entry of the copy is: @old is of a large page, or leads to a table of K's. */
static u64 inherit(u64 old, u32 shift, u32 i)
{
	u64 entry;

	if (old & HV_NPT_LARGE) {
		entry = old + ((u64)i << (shift - 9));
		return shift == 21 ? entry & ~HV_NPT_LARGE : entry;
	}
	entry = table_of(old)[i];
	if (!(entry & 1))
		return 0;
	entry |= old & HV_NPT_NO_EXECUTE;
	return is_table(entry, shift - 9) ? entry | HV_NPT_SHARED : entry;
}

/*
 * The table to which @entry leads, which spans 2^@shift bytes; it is this view's alone. NULL
 * without memory.
 */
static u64 *own_table(u64 *entry, u32 shift)
{
	u64 *table, old = *entry;
	u32 i;

	if (is_table(old, shift) && !(old & HV_NPT_SHARED))
		return table_of(old);
	table = hv_pool_take(1);
	if (!table)
		return NULL;
	for (i = 0; i < HV_ENTRIES && old & 1; i++)
		table[i] = inherit(old, shift, i);
	__atomic_store_n(entry, hv_physical(table) | HV_NPT_WRITE, __ATOMIC_RELEASE);
	return table;
}

u64 *hv_nested_entry(u64 root, u64 address, u32 shift)
{
	u64 *entry = &table_of(root)[hv_index(address, 39)], *table;
	u32 at;

	for (at = 39; at > shift; at -= 9) {
		table = own_table(entry, at);
		if (!table)
			return NULL;
		entry = &table[hv_index(address, at - 9)];
	}
	return entry;
}

void hv_nested_follow(u64 root, u64 address)
{
	u64 *entry = &table_of(root)[hv_index(address, 39)];
	u64 *k = &table_of(hv_config.nested_cr3)[hv_index(address, 39)];
	u32 shift = 39;

	/* What is shared, or was a large page, is K's table from here on. */
	for (; is_table(*entry, shift) && !(*entry & HV_NPT_SHARED); shift -= 9) {
		entry = &table_of(*entry)[hv_index(address, shift - 9)];
		k = &table_of(*k)[hv_index(address, shift - 9)];
	}
	__atomic_store_n(entry, *k | HV_NPT_NO_EXECUTE | (is_table(*k, shift) ? HV_NPT_SHARED : 0),
			 __ATOMIC_RELEASE);
}

u64 hv_nested_look(u64 address)
{
	u64 entry = table_of(hv_config.nested_cr3)[hv_index(address, 39)];
	u32 shift = 39;

	while (is_table(entry, shift)) {
		shift -= 9;
		entry = table_of(entry)[hv_index(address, shift)];
	}
	if (entry & 1 && shift > 12)
		entry = (entry & ~HV_NPT_LARGE) + (address & ((1ULL << shift) - 1) & HV_ADDRESS);
	return entry;
}

bool hv_nested_hides(u64 address)
{
	return (hv_nested_look(address) & HV_NPT_WRITE & ~BIT_ULL(6)) == HV_NPT_READ;
}

u64 hv_nested_hidden[64];

void hv_nested_hide(u64 frame)
{
	u32 hash = hv_nested_hash(frame);

	__atomic_or_fetch(&hv_nested_hidden[hash / 64], BIT_ULL(hash % 64), __ATOMIC_RELEASE);
}

void hv_nested_hide_none(void)
{
	u32 i;

	for (i = 0; i < 64; i++)
		__atomic_store_n(&hv_nested_hidden[i], 0, __ATOMIC_RELEASE);
}

u64 hv_nested_make(u64 rights)
{
	u64 *root = hv_pool_take(1), *k = table_of(hv_config.nested_cr3);
	u32 i;

	for (i = 0; root && i < HV_ENTRIES; i++)
		if (k[i])
			root[i] = k[i] | HV_NPT_SHARED | rights;
	return root ? hv_physical(root) : 0;
}

static void free_table(u64 *table, u32 shift)
{
	u32 i;

	for (i = 0; i < HV_ENTRIES; i++)
		if (is_table(table[i], shift) && !(table[i] & HV_NPT_SHARED))
			free_table(table_of(table[i]), shift - 9);
	hv_pool_give(table, 1);
}

void hv_nested_free(u64 root)
{
	free_table(table_of(root), 39);
}
