// SPDX-License-Identifier: GPL-2.0-only
/*
 * The nested page tables of the views. Each begins as a copy of the top level of K's, whose entries
 * are marked as shared: they lead to tables of K's. On the way to an entry that is to be changed, a
 * shared table is copied, and a large page is divided. That an entry is not executable holds for
 * all below it, so that whole views need one bit in each entry of the top level; it moves down with
 * the copies.
 *
 * A table is complete before an entry leads to it, so that other CPUs may walk it meanwhile.
 *
 * A view of a module has its tables until the registration ends. K and the single step, which have
 * no end, join what they have divided when all of it is again as it was (hv_nested_join()). The
 * pool then gets their tables, and may make shadows of them, whose contents the kernel chooses. So
 * nobody may still walk them:
 *
 * - No entry of any view leads to them. K's own entry is large again. The step and the views of
 *   modules may share a table with K, and follow at once. Views of class S share nothing with K,
 *   and the step's tables are nobody else's.
 * - A processor may still have cached such an entry, for either of its tags: the pool gets a table
 *   when each CPU has flushed all tags (hv_pool_give_after()). Until then the table is as it was,
 *   and leads to what the large page has. A CPU that is launched later begins with a flush, and one
 *   that leaves the guard uses no nested page table.
 * - A CPU in the guard may read the tables of K without the lock (hv_nested_look()). It has not
 *   left the guard meanwhile, and so it has not flushed.
 */
#include <linux/types.h>

#include "guard/hv/views.h"

static u64 *table_of(u64 entry)
{
	return hv_pointer(entry & HV_ADDRESS);
}

static bool is_table(u64 entry, u32 shift)
{
	return entry & HV_NPT_PRESENT && shift > HV_SHIFT_PAGE && !(entry & HV_NPT_LARGE);
}

/* Whether an entry leads to a table that is this view's alone. */
static bool is_own(u64 entry, u32 shift)
{
	return is_table(entry, shift) && !(entry & HV_NPT_SHARED);
}

/* What an entry of the copy is: @old is of a large page, or leads to a table of K's, or is none. */
static u64 inherit(u64 old, u32 shift, u32 i)
{
	u64 entry;

	if (!(old & HV_NPT_PRESENT))
		return 0;
	if (old & HV_NPT_LARGE) {
		entry = old + ((u64)i << (shift - HV_SHIFT_STEP));
		return shift == HV_SHIFT_LARGE ? entry & ~HV_NPT_LARGE : entry;
	}
	entry = table_of(old)[i];
	if (!(entry & HV_NPT_PRESENT))
		return 0;
	entry |= old & HV_NPT_NO_EXECUTE;
	return is_table(entry, shift - HV_SHIFT_STEP) ? entry | HV_NPT_SHARED : entry;
}

/*
 * The table to which @entry leads, which spans 2^@shift bytes; it is this view's alone. NULL
 * without memory.
 */
static u64 *own_table(u64 *entry, u32 shift)
{
	u64 *table, old = *entry;
	u32 i;

	if (is_own(old, shift))
		return table_of(old);
	table = hv_pool_take(1);
	if (!table)
		return NULL;
	for (i = 0; i < HV_ENTRIES; i++)
		table[i] = inherit(old, shift, i);
	__atomic_store_n(entry, hv_physical(table) | HV_NPT_WRITE, __ATOMIC_RELEASE);
	return table;
}

u64 *hv_nested_entry(u64 root, u64 address, u32 shift)
{
	u64 *entry = &table_of(root)[hv_index(address, HV_SHIFT_TOP)], *table;
	u32 at;

	for (at = HV_SHIFT_TOP; at > shift; at -= HV_SHIFT_STEP) {
		table = own_table(entry, at);
		if (!table)
			return NULL;
		entry = &table[hv_index(address, at - HV_SHIFT_STEP)];
	}
	return entry;
}

/* What a view has for the 2^@shift bytes around an address if it has no table of its own there. */
static u64 shared_entry(u64 address, u32 shift)
{
	u64 entry = table_of(hv_config.nested_cr3)[hv_index(address, HV_SHIFT_TOP)];
	u32 at;

	if (is_table(entry, HV_SHIFT_TOP))
		entry |= HV_NPT_SHARED;
	for (at = HV_SHIFT_TOP; at > shift; at -= HV_SHIFT_STEP)
		entry = inherit(entry, at, hv_index(address, at - HV_SHIFT_STEP));
	return entry;
}

static void follow(u64 root, u64 address, u64 rights)
{
	u64 *entry = &table_of(root)[hv_index(address, HV_SHIFT_TOP)];
	u32 shift = HV_SHIFT_TOP;

	/* What is shared, or was a large page, is K's from here on. */
	for (; is_own(*entry, shift); shift -= HV_SHIFT_STEP)
		entry = &table_of(*entry)[hv_index(address, shift - HV_SHIFT_STEP)];
	__atomic_store_n(entry, shared_entry(address, shift) | rights, __ATOMIC_RELEASE);
}

void hv_nested_follow(u64 root, u64 address)
{
	follow(root, address, HV_NPT_NO_EXECUTE);
}

/* What an entry of K's is if nothing below it is hidden from the kernel, or frozen. */
static u64 plain_entry(u64 address, u32 shift)
{
	return (address & HV_ADDRESS & ~(BIT_ULL(shift) - 1)) | HV_NPT_WRITE | HV_NPT_LARGE;
}

/* Whether a table has what it had when it was made of @whole. */
static bool is_copy(const u64 *table, u64 whole, u32 shift)
{
	u32 i;

	for (i = 0; i < HV_ENTRIES; i++)
		if (table[i] != inherit(whole, shift, i))
			return false;
	return true;
}

/*
 * Of K or of the step, from the lowest table up. The loader's tables stay. Returns whether there is
 * one less.
 */
static bool join(u64 root, u64 address)
{
	bool is_k = root == hv_config.nested_cr3, joined = false;
	u64 *path[3], *table, whole;
	u32 shift = HV_SHIFT_TOP;
	int depth = 0;

	path[0] = &table_of(root)[hv_index(address, HV_SHIFT_TOP)];
	for (; is_own(*path[depth], shift) && shift > HV_SHIFT_LARGE; depth++) {
		table = table_of(*path[depth]);
		shift -= HV_SHIFT_STEP;
		path[depth + 1] = &table[hv_index(address, shift)];
	}
	if (!is_own(*path[depth], shift)) {
		depth--;
		shift += HV_SHIFT_STEP;
	}
	for (; depth >= 0; depth--, shift += HV_SHIFT_STEP) {
		table = table_of(*path[depth]);
		whole = is_k ? plain_entry(address, shift) : shared_entry(address, shift);
		if (!hv_pool_has(table) || !is_copy(table, whole, shift))
			break;
		__atomic_store_n(path[depth], whole, __ATOMIC_RELEASE);
		hv_pool_give_after(table, hv_present);
		joined = true;
	}
	return joined;
}

static void views_follow(u64 address)
{
	u32 i;

	for (i = 0; i < HV_REGISTRATIONS; i++) {
		if (!hv_guarded[i].view || hv_is_secret(&hv_guarded[i]))
			continue;
		hv_nested_follow(hv_guarded[i].view, address);
		if (hv_guarded[i].lowered_view)
			hv_nested_follow(hv_guarded[i].lowered_view, address);
	}
}

void hv_nested_join(u64 address)
{
	/* If there is something to join, no module has anything of its own there but leaves. */
	if (join(hv_config.nested_cr3, address)) {
		follow(hv_config.step_cr3, address, 0);
		views_follow(address);
	}
	join(hv_config.step_cr3, address);
}

/* The entry that a nested page table has for an address, of 2^@shift bytes. */
static u64 last_entry(u64 root, u64 address, u32 *shift)
{
	u64 entry = table_of(root)[hv_index(address, HV_SHIFT_TOP)];

	for (*shift = HV_SHIFT_TOP; is_table(entry, *shift);) {
		*shift -= HV_SHIFT_STEP;
		entry = table_of(entry)[hv_index(address, *shift)];
	}
	return entry;
}

u64 hv_nested_look(u64 address)
{
	u32 shift;
	u64 entry = last_entry(hv_config.nested_cr3, address, &shift);

	if (entry & HV_NPT_PRESENT && shift > HV_SHIFT_PAGE)
		entry = (entry & ~HV_NPT_LARGE) + (address & ((1ULL << shift) - 1) & HV_ADDRESS);
	return entry;
}

bool hv_nested_is_plain(u64 root, u64 address)
{
	u32 shift;
	u64 entry = last_entry(root, address, &shift), plain = plain_entry(address, shift);

	if (shift == HV_SHIFT_PAGE)
		plain &= ~HV_NPT_LARGE;
	return (entry & ~HV_NPT_NO_EXECUTE) == plain;
}

bool hv_nested_drops_writes(u64 address)
{
	return (hv_nested_look(address) & (HV_NPT_READ | BIT_ULL(1))) == HV_NPT_READ;	/* no R/W */
}

static u64 take_written(u64 *table, u32 shift, u64 address)
{
	u64 found;
	u32 i;

	for (i = 0; i < HV_ENTRIES; i++, address += BIT_ULL(shift)) {
		if (is_own(table[i], shift) || !((table[i] ^ hv_config.sink_table) & HV_ADDRESS)) {
			found = take_written(table_of(table[i]), shift - HV_SHIFT_STEP, address);
			if (found)
				return found;
		} else if (!((table[i] ^ hv_config.sink_entry) & HV_ADDRESS) &&
			   table[i] & HV_NPT_DIRTY) {
			__atomic_and_fetch(&table[i], ~HV_NPT_DIRTY, __ATOMIC_RELAXED);
			return address;
		}
	}
	return 0;
}

u64 hv_nested_take_written(void)
{
	return take_written(table_of(hv_config.step_cr3), HV_SHIFT_TOP, 0);
}

u64 hv_nested_hidden[HV_HIDDEN_WORDS];

void hv_nested_hide(u64 frame)
{
	u32 hash = hv_nested_hash(frame);

	__atomic_or_fetch(&hv_nested_hidden[hash / 64], BIT_ULL(hash % 64), __ATOMIC_RELEASE);
}

void hv_nested_hide_none(void)
{
	u32 i;

	for (i = 0; i < HV_HIDDEN_WORDS; i++)
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
		if (is_own(table[i], shift))
			free_table(table_of(table[i]), shift - HV_SHIFT_STEP);
	hv_pool_give(table, 1);
}

void hv_nested_free(u64 root)
{
	free_table(table_of(root), HV_SHIFT_TOP);
}
