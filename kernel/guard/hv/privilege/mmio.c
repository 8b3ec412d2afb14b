// SPDX-License-Identifier: GPL-2.0-only
/*
 * The privilege "mmio": the memory BARs of a PCI function. They are mapped in the nested page table
 * of one M alone. In K, in L, and in every other M there is a page of ones instead, read-only, and
 * a write is dropped as one to the guard's memory is (memory.c). A crossing has nothing to do.
 *
 * While configuration space is guarded (pci.c), its window (ECAM) is read-only for all: what is
 * written there vanishes, since the guard decodes no instruction. Linux uses ports for the first
 * 256 bytes of each function, and the window for the rest.
 */
#include <linux/types.h>
#include <uapi/asm-generic/errno.h>

#include "guard/hv/views.h"

/* What a view shows of a range. */
enum shown { REAL, READ_ONLY, ONES, SINK };

static struct { u64 ones[HV_ENTRIES], table[HV_ENTRIES]; } hidden __aligned(HV_PAGE);

static u64 entry_of(enum shown shown, u64 at)
{
	switch (shown) {
	case REAL:
		return at | HV_NPT_WRITE;
	case READ_ONLY:
		return at | HV_NPT_READ;
	case ONES:
		return hv_physical(hidden.ones) | HV_NPT_READ;
	default:
		return hv_config.sink_entry;
	}
}

static u64 large_entry_of(enum shown shown, u64 at)
{
	switch (shown) {
	case ONES:
		return hv_physical(hidden.table) | HV_NPT_WRITE | HV_NPT_SHARED;
	case SINK:
		return hv_config.sink_table | HV_NPT_SHARED;
	default:
		return entry_of(shown, at) | HV_NPT_LARGE;
	}
}

/* hv_privileges_need() has set aside the memory for all entries. */
static u64 *entry_in(u64 root, u64 at, u32 shift)
{
	u64 *entry = hv_nested_entry(root, at, shift);

	if (!entry)
		hv_reset();
	return entry;
}

/* A range of one view. Where the view has a table of its own for 2 MB, it keeps the table. */
static void set(u64 root, u64 first, u64 size, enum shown shown, u64 rights)
{
	u64 at = first, *entry;

	while (at < first + size) {
		entry = entry_in(root, at, HV_SHIFT_LARGE);
		if (!(at % HV_LARGE_PAGE) && first + size - at >= HV_LARGE_PAGE &&
		    (!(*entry & HV_NPT_PRESENT) || *entry & (HV_NPT_LARGE | HV_NPT_SHARED))) {
			__atomic_store_n(entry, large_entry_of(shown, at) | rights,
					 __ATOMIC_RELEASE);
			at += HV_LARGE_PAGE;
			continue;
		}
		__atomic_store_n(entry_in(root, at, HV_SHIFT_PAGE), entry_of(shown, at) | rights,
				 __ATOMIC_RELEASE);
		at += HV_PAGE;
	}
}

/* The same in all views, but for M of @guarded. Class S has no devices in its M, and no L. */
static void set_all(const struct hv_guarded *guarded, u64 first, u64 size, enum shown shown)
{
	u32 i;

	set(hv_config.nested_cr3, first, size, shown, 0);
	set(hv_config.step_cr3, first, size, SINK, 0);
	for (i = 0; i < HV_REGISTRATIONS; i++) {
		/* M of class S has no devices. */
		if (!hv_guarded[i].view || hv_is_secret(&hv_guarded[i]))
			continue;
		if (&hv_guarded[i] != guarded)
			set(hv_guarded[i].view, first, size, shown, HV_NPT_NO_EXECUTE);
		set(hv_guarded[i].lowered_view, first, size, shown, HV_NPT_NO_EXECUTE);
	}
	hv_views_changed++;
}

/* The kernel has a range again. The views of modules follow, which takes no memory. */
static void give_back(u64 first, u64 size)
{
	u64 at;
	u32 i;

	set(hv_config.nested_cr3, first, size, REAL, 0);
	set(hv_config.step_cr3, first, size, REAL, 0);
	for (i = 0; i < HV_REGISTRATIONS; i++) {
		if (!hv_guarded[i].view || hv_is_secret(&hv_guarded[i]))
			continue;
		for (at = first; at < first + size; at += HV_PAGE) {
			hv_nested_follow(hv_guarded[i].view, at);
			hv_nested_follow(hv_guarded[i].lowered_view, at);
		}
	}
	for (at = first & ~(HV_LARGE_PAGE - 1); at < first + size; at += HV_LARGE_PAGE)
		hv_nested_join(at);
	hv_views_changed++;
}

/* Whether a range can be a BAR: whole pages outside of memory, which no registration has. */
static bool is_bar(const struct hv_privilege *bar)
{
	u64 at;

	if (!bar->first || bar->first % HV_PAGE || bar->size & (bar->size - 1) ||
	    bar->first % bar->size || bar->function == HV_NO_FUNCTION ||
	    bar->first + bar->size > hv_config.end)
		return false;
	if (bar->first < hv_config.ecam + hv_config.ecam_size &&
	    hv_config.ecam < bar->first + bar->size)
		return false;
	for (at = bar->first; at < bar->first + bar->size; at += HV_PAGE)
		if (hv_is_memory(at) || hv_nested_look(at) != (at | HV_NPT_WRITE))
			return false;
	return true;
}

static s64 init(struct hv_guarded *guarded)
{
	const struct hv_privilege *bar = guarded->privileges;
	u32 i;

	for (i = 0; i < guarded->privilege_count; i++)
		if (bar[i].kind == HV_PRIVILEGE_MMIO && !is_bar(&bar[i]))
			return -EINVAL;
	for (i = 0; i < guarded->privilege_count; i++) {
		if (bar[i].kind != HV_PRIVILEGE_MMIO)
			continue;
		set_all(guarded, bar[i].first, bar[i].size, ONES);
		set(guarded->view, bar[i].first, bar[i].size, REAL, HV_NPT_NO_EXECUTE);
	}
	return 0;
}

static void deinit(struct hv_guarded *guarded)
{
	const struct hv_privilege *bar = guarded->privileges;
	u32 i;

	for (i = 0; i < guarded->privilege_count; i++)
		if (bar[i].kind == HV_PRIVILEGE_MMIO)
			give_back(bar[i].first, bar[i].size);
}

void hv_mmio_close_window(void)
{
	set_all(NULL, hv_config.ecam, hv_config.ecam_size, READ_ONLY);
}

void hv_mmio_open_window(void)
{
	give_back(hv_config.ecam, hv_config.ecam_size);
}

void hv_mmio_start(void)
{
	const struct hv_privilege_functions functions = { .init = init, .deinit = deinit };
	u32 i;

	for (i = 0; i < HV_ENTRIES; i++) {
		hidden.ones[i] = ~0ULL;
		hidden.table[i] = hv_physical(hidden.ones) | HV_NPT_READ;
	}
	hv_privilege_register(HV_PRIVILEGE_MMIO, &functions);
}
