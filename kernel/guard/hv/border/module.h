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

/* The length of UD2, which WARN and BUG execute. */
#define UD2_LENGTH	2

#define NO_FIXUP	0xffffffff

int module_has(const struct border_module *module, u64 rip);
u8 module_entry(const struct border_module *module, u64 rip);

/*
 * Returns whether an activation that was interrupted at @from may resume at @to. Sets @fixup to
 * the number of the fixup that leads there, or to NO_FIXUP.
 */
int module_may_resume(const struct border_module *module, u8 cause, u64 from, u64 to, u32 *fixup);

/* The highest address of the private stack of an activation. */
u64 module_stack_top(const struct border_module *module, u32 activation);

#endif /* GUARD_BORDER_MODULE_H */
