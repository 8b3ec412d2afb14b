/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Exec views: modules whose text runs with privileges, and who may enter it.
 *
 * There are two views of memory. In K, the kernel's, the text of a guarded module is not
 * executable, and leads to a shadow: a copy that the kernel may read and patch. In M, one for each
 * module, nothing but its text is executable, its golden frames, which nobody writes; and only M
 * has the private frames. So each way across the border is a fetch that faults, an interrupt or an
 * exception, and cross.c asks border control (border/) which of the six crossings it is.
 *
 * M has a VMCB of its own on each CPU, with the constants of the launch: the guest hands it RIP,
 * RSP, general registers and harmless flags only. It has page tables of its own (space.c), so that
 * the kernel cannot exchange the frames to which the addresses of the text lead.
 *
 * A fetch that is no crossing continues without the privileges, in a third view of each module, L:
 * K's, but the shadow text is executable, and nothing else. The code that then runs is the
 * kernel's like any other, since the kernel could copy it, too. The first fetch elsewhere leads
 * back to K.
 *
 * register.c steps a registration; privilege/ has the privileges other than memory; nested.c has
 * the nested page tables, space.c M's page tables. They call no file of this list that is before
 * them.
 */
#ifndef GUARD_HV_VIEWS_H
#define GUARD_HV_VIEWS_H

/* The loader has these, too. */
#define HV_REGISTRATIONS	8

#ifndef __ASSEMBLER__

#include <linux/types.h>

#include "guard/hv/privilege/privilege.h"

#define HV_NOWHERE	(~0ULL)
/* In a fixup: it sets no register. */
#define HV_NO_REGISTER	16

/* The most bytes of a struct hv_registration. */
#define HV_REGISTRATION_SIZE	0x10000

/* Calls, interrupts and nested entries of all guarded modules at a time. */
#define HV_ACTIVATIONS		64

/**
 * struct hv_registration - what the guard has to know about a module before it is entered. It is
 * in physically contiguous memory, from the beginning of a page.
 * @text:	linear address of the text, the beginning of a page
 * @text_pages:	the kernel frees none of them while the module is registered
 * @data_count:	other pages of the module's own, as M is to find them
 * @private_count: pages that only M has; their contents are cleared in the end
 * @init:	offset into the text, or HV_NOWHERE
 * @exit:	the same
 * @words:	@text_pages physical addresses; @data_count struct hv_page; @private_count physical
 *		addresses; @entry_count offsets into the text, sorted; @bug_count offsets, sorted;
 *		@fixup_count struct hv_fixup, sorted by @from; @privilege_count struct hv_privilege
 */
struct hv_registration {
	u64 text;
	u32 text_pages;
	u32 data_count;
	u32 private_count;
	u32 entry_count;
	u32 bug_count;
	u32 fixup_count;
	u32 privilege_count;
	u32 reserved;
	u64 init;
	u64 exit;
	u64 words[];
};

/* @entry: an entry of a page table: the physical address, with rights */
struct hv_page {
	u64 address;
	u64 entry;
};

/* @reg: the general register that the kernel sets, by its number; HV_NO_REGISTER: none */
struct hv_fixup {
	u64 from;
	u64 to;
	u64 reg;
};

static inline u64 hv_registration_size(const struct hv_registration *registration)
{
	return sizeof(*registration) +
	       registration->text_pages * sizeof(u64) +
	       registration->data_count * sizeof(struct hv_page) +
	       registration->private_count * sizeof(u64) +
	       ((u64)registration->entry_count + registration->bug_count) * sizeof(u64) +
	       registration->fixup_count * sizeof(struct hv_fixup) +
	       registration->privilege_count * sizeof(struct hv_privilege);
}

#include "guard/hv/border/border.h"
#include "guard/hv/hv.h"

/**
 * struct hv_guarded - a module, while it is registered
 * @used:	otherwise nothing here has a meaning
 * @number:	its index
 * @size:	of its text; 0 if it is not used
 * @border:	its automaton
 * @module:	what border control knows about it
 * @copy:	the guard's own copy of what was registered
 * @texts:	physical addresses of the golden frames
 * @shadows:	the shadow frames
 * @datas:	other pages of its own
 * @privates:	physical addresses of the private frames
 * @registers:	of each fixup, what it sets
 * @view:	M's nested page table
 * @lowered_view: L's
 * @leaving:	CPUs that may still use what is to be given back
 * @privileges:	what it has besides memory
 * @privilege_mask: their kinds
 * @iopm:	M's I/O permission map, if it has ports; @msrpm: that of MSRs
 */
struct hv_guarded {
	bool used;
	u8 number;
	u64 size;
	struct border_registration border;
	struct border_module module;
	struct hv_registration *copy;
	const u64 *texts;
	u8 *shadows;
	const struct hv_page *datas;
	const u64 *privates;
	struct hv_fixup *fixups;
	struct border_fixup *border_fixups;
	u64 view;
	u64 lowered_view;
	u64 leaving;
	struct hv_privilege *privileges;
	u32 privilege_count;
	u32 privilege_mask;
	u8 *iopm;
	u8 *msrpm;
};

/* All that register.c, nested.c and space.c change. */
extern u8 hv_views_lock;
/* Grows with each change of a view. */
extern u32 hv_views_changed;
extern struct hv_guarded hv_guarded[HV_REGISTRATIONS];

/* nested.c */
/* Returns the physical address of a nested page table like K's, where nothing is executable. */
u64 hv_nested_make(u64 rights);
void hv_nested_free(u64 root);
/*
 * Returns the entry of a nested page table that maps 4 KB (@shift 12) or 2 MB (21) at a physical
 * address of the guest. It leads to nothing that another nested page table has, too.
 */
u64 *hv_nested_entry(u64 root, u64 address, u32 shift);
/* Returns the entry that K has for a page. */
u64 hv_nested_look(u64 address);

/* space.c */
/* Once, before all else. */
void hv_space_init(void);
/* M's address space on this CPU, as the kernel's is now; and its end. */
void hv_space_start(struct hv_cpu *cpu);
void hv_space_stop(struct hv_cpu *cpu);
/*
 * Maps a page of the module's own, also on another CPU; @entry: 0 for none, @cr3: the kernel's on
 * this CPU. Returns false without memory.
 */
bool hv_space_map(struct hv_cpu *cpu, u64 cr3, u64 address, u64 entry);
/* The nested page table of M has M's page tables. */
void hv_space_reveal(u64 root);
/* A fault of M: copies what the kernel's tables have. Returns whether there was something. */
bool hv_space_borrow(struct hv_cpu *cpu, u64 address);
void hv_space_give_back(struct hv_cpu *cpu);
/* Reads what the kernel has at an address. Returns false if it has nothing there. */
bool hv_space_read(u64 cr3, u64 address, u64 *value);

/* register.c */
/* K executes the shadow text of @guarded on this CPU (L); NULL: none. */
void hv_lower(struct hv_cpu *cpu, const struct hv_guarded *guarded);
void hv_register_start(struct hv_cpu *cpu);
void hv_register_stop(struct hv_cpu *cpu);
s64 hv_register_call(struct hv_cpu *cpu, u64 number, u64 *b, u64 c);
/* An event of a registration that a crossing has caused. */
void hv_register_change(struct hv_cpu *cpu, struct hv_guarded *guarded, u8 event);
extern struct border_activation hv_activations[HV_ACTIVATIONS];

/* The module that runs on this CPU; NULL in K. */
static inline const struct hv_guarded *hv_current(const struct hv_cpu *cpu)
{
	if (cpu->border.view == VIEW_K)
		return NULL;
	return &hv_guarded[word_registration(hv_activations[cpu->border.activation].word)];
}

static inline void hv_border_begin(struct border *border, struct hv_cpu *cpu,
				   struct hv_guarded *guarded)
{
	border->cpu = &cpu->border;
	border->activations = hv_activations;
	border->activation_count = HV_ACTIVATIONS;
	border->registration = &guarded->border;
	border->module = &guarded->module;
	border->cpu_number = cpu->number;
	border->registration_number = guarded->number;
	border->actions.count = 0;
}

/* cross.c */
/* A fetch in K or L that faults. Returns false if it has nothing to do with a guarded module. */
bool hv_cross_fetch(struct hv_cpu *cpu);
/* The CPU is in M, and has exited. */
void hv_cross_exit(struct hv_cpu *cpu, u32 code);

#endif /* !__ASSEMBLER__ */

#endif /* GUARD_HV_VIEWS_H */
