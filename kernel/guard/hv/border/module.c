// SPDX-License-Identifier: GPL-2.0-only
/* Lookups in a module's tables: see module.h. */
#include "guard/hv/border/module.h"

/* Returns the index of @wanted in a sorted table, or @count. */
static u32 find(const u64 *table, u32 count, u64 wanted)
{
	u32 low = 0, high = count;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (table[middle] == wanted)
			return middle;
		if (table[middle] < wanted)
			low = middle + 1;
		else
			high = middle;
	}
	return count;
}

int module_has(const struct border_module *module, u64 rip)
{
	return (rip >= module->text && rip < module->text_end) ||
	       (rip >= module->init_text && rip < module->init_text_end);
}

u8 module_entry(const struct border_module *module, u64 rip)
{
	if (!rip)
		return ENTRY_NONE;
	if (rip == module->init)
		return ENTRY_INIT;
	if (rip == module->exit)
		return ENTRY_EXIT;
	if (find(module->entries, module->entry_count, rip) < module->entry_count)
		return ENTRY_CALL;
	return ENTRY_NONE;
}

int module_may_resume(const struct border_module *module, u8 cause, u64 from, u64 to, u32 *fixup)
{
	*fixup = NO_FIXUP;
	if (to == from)
		return 1;
	if (cause == CAUSE_BUG)
		return to == from + UD2_LENGTH &&
		       find(module->bugs, module->bug_count, from) < module->bug_count;
	if (cause != CAUSE_FAULT)
		return 0;
	/* A place may have several fixups, which the kernel's table allows: few enough to scan. */
	for (u32 i = 0; i < module->fixup_count; i++) {
		if (module->fixups[i].from == from && module->fixups[i].to == to) {
			*fixup = i;
			return 1;
		}
	}
	return 0;
}

u64 module_stack_top(const struct border_module *module, u32 activation)
{
	return module->stacks + (activation + 1) * module->stack_size;
}
