/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the guard knows about a module's code, which is constant once the content was hashed:
 * where it is, where it may be entered, and where an exception may return to.
 */
#ifndef GUARD_BORDER_MODULE_H
#define GUARD_BORDER_MODULE_H

#include "guard/hv/border/types.h"

enum border_entry {
	ENTRY_NONE,
	ENTRY_INIT,	/* once, and before any other */
	ENTRY_CALL,
	ENTRY_EXIT,	/* its return ends the registration, but not a jump to the kernel */
};

/* Why M was left by an interrupt or exception: it decides where it may resume. */
enum border_cause {
	CAUSE_INTERRUPT,	/* interrupts, NMI, #MC: exactly where it was */
	CAUSE_BUG,		/* #UD, as by WARN: also after it, if the table has it */
	CAUSE_FAULT,		/* other exceptions: also at the fixup of this place */
};

/* @reg is the hypervisor's: the general register that the kernel sets, or BORDER_NO_REGISTER. */
struct border_fixup {
	u64 from;
	u64 to;
	u64 reg;
};

#define BORDER_NO_REGISTER	16

/* All addresses are linear, and the tables are sorted by address. */
struct border_module {
	u8 class;
	u64 text, text_end;
	u64 init_text, init_text_end;	/* text that is given back after init; or empty */
	u64 init, exit;			/* 0 if there is none */
	const u64 *entries;
	u32 entry_count;
	u64 *found;		/* BORDER_FOUND entries that were found in the table, or 0 */
	const u64 *bugs;
	u32 bug_count;
	const struct border_fixup *fixups;
	u32 fixup_count;
	/* Class S only. */
	u64 stub;	/* a place of the text, where the kernel sees each activation that is out */
	u64 gate;	/* a return of the kernel's: M returns there, and then K does */
	u64 stacks;	/* the private stacks, one for each activation of the pool */
	u64 stack_size;
};

/* A place of the text is looked for at its number of 16 bytes, modulo this. */
#define BORDER_FOUND	32

/* The length of UD2, which WARN and BUG execute. */
#define UD2_LENGTH	2

#define NO_FIXUP	0xffffffff

/* Returns the index of @wanted in a sorted table, or @count. */
static inline u32 module_find(const u64 *table, u32 count, u64 wanted)
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

static __always_inline int module_has(const struct border_module *module, u64 rip)
{
	return (rip >= module->text && rip < module->text_end) ||
	       (rip >= module->init_text && rip < module->init_text_end);
}

/* The table is constant, and so what was found in it stays true. */
static __always_inline u8 module_entry(const struct border_module *module, u64 rip)
{
	u64 *found = &module->found[rip / 16 % BORDER_FOUND];

	if (!rip)
		return ENTRY_NONE;
	if (__atomic_load_n(found, __ATOMIC_RELAXED) == rip)
		return ENTRY_CALL;
	if (rip == module->init)
		return ENTRY_INIT;
	if (rip == module->exit)
		return ENTRY_EXIT;
	if (module_find(module->entries, module->entry_count, rip) < module->entry_count) {
		__atomic_store_n(found, rip, __ATOMIC_RELAXED);
		return ENTRY_CALL;
	}
	return ENTRY_NONE;
}

/*
 * Returns whether an activation that was interrupted at @from may resume at @to. Sets @fixup to
 * the number of the fixup that leads there, or to NO_FIXUP.
 */
static inline int module_may_resume(const struct border_module *module, u8 cause, u64 from, u64 to,
				    u32 *fixup)
{
	*fixup = NO_FIXUP;
	if (to == from)
		return 1;
	if (cause == CAUSE_BUG)
		return to == from + UD2_LENGTH &&
		       module_find(module->bugs, module->bug_count, from) < module->bug_count;
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

/* The highest address of the private stack of an activation. */
static inline u64 module_stack_top(const struct border_module *module, u32 activation)
{
	return module->stacks + (activation + 1) * module->stack_size;
}

#endif /* GUARD_BORDER_MODULE_H */
