// SPDX-License-Identifier: GPL-2.0-only
/*
 * A tally of the crossings of one module, by the functions at which they happen: its entry points,
 * and the functions outside that it calls. A module has one if its registration asks for it, so
 * that others do not pay for the search; and the table is bounded, with a row for all that has
 * found none.
 *
 * It tells the kernel nothing new: the kernel itself calls these entry points, and executes these
 * functions. Modules of class S, which the kernel must not watch, have none.
 */
#include <linux/types.h>
#include <uapi/asm-generic/errno.h>

#include "guard/hv/views.h"

/*
 * By the activation: the entry point at which the module was entered, and the function that it
 * called last. Only the CPU that has the activation uses them.
 */
static struct {
	u64 entry;
	u64 called;
} functions[HV_ACTIVATIONS];

/* The row of a function, which is taken when the function is met for the first time. */
static struct hv_tally_row *row_of(struct hv_tally_row *rows, u64 address)
{
	u32 first = address >> 4 ^ address >> 12, i;

	for (i = 0; address && i < HV_TALLY_ROWS - 1; i++) {
		struct hv_tally_row *row = &rows[1 + (first + i) % (HV_TALLY_ROWS - 1)];
		u64 taken = 0;

		if (__atomic_compare_exchange_n(&row->address, &taken, address, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
		    taken == address)
			return row;
	}
	return &rows[HV_TALLY_OTHERS];
}

void hv_tally_add(struct hv_guarded *guarded, const struct border_activation *activation,
		  u8 crossing, u64 rip)
{
	u32 index = activation - hv_activations;
	bool is_call = crossing == BORDER_OUT_CALL || crossing == BORDER_IN_RET;
	u64 *function = is_call ? &functions[index].called : &functions[index].entry;

	/* A return is counted where the call was. */
	if (crossing == BORDER_IN_CALL || crossing == BORDER_OUT_CALL)
		*function = rip;
	__atomic_fetch_add(&row_of(guarded->tally, *function)->crossings[crossing], 1,
			   __ATOMIC_RELAXED);
}

s64 hv_tally_read(const struct hv_tally_row *rows, u64 row, u64 word, u64 *value)
{
	if (!rows)
		return -ENODATA;
	if (row >= HV_TALLY_ROWS || word >= sizeof(*rows) / sizeof(u64))
		return -ENOENT;
	*value = __atomic_load_n((const u64 *)&rows[row] + word, __ATOMIC_RELAXED);
	return 0;
}
