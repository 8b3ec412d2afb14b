/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Exec views: modules whose text runs with privileges, and the ways into it.
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
 * A module of class S keeps secrets. Its address space has its own pages only, of which it shares
 * one part with the kernel, the exchange; it works on private stacks, and the kernel sees none of
 * its registers. It has no L: what is refused raises #GP.
 *
 * register.c steps a registration; privilege/ has the privileges other than memory; nested.c has
 * the nested page tables, space.c and secret.c M's address space, for class D and class S. Calls go
 * down: cross.c, register.c, privilege/, then nested.c, space.c and secret.c.
 */
#ifndef GUARD_HV_VIEWS_H
#define GUARD_HV_VIEWS_H

/* The loader has these, too. */
#define HV_REGISTRATIONS	8

#ifndef __ASSEMBLER__

#include <linux/bits.h>
#include <linux/types.h>

#include "guard/hv/privilege/privilege.h"

#define HV_NOWHERE	(~0ULL)
/* In a fixup: it sets no register. */
#define HV_NO_REGISTER	16

/* The most bytes of a struct hv_registration. */
#define HV_REGISTRATION_SIZE	0x10000

/* Calls, interrupts and nested entries of all guarded modules of class D at a time. */
#define HV_ACTIVATIONS		64
/* The most private stacks of a module of class S: it has as many activations, of its own. */
#define HV_STACKS		4
#define HV_ALL_ACTIVATIONS	(HV_ACTIVATIONS + HV_REGISTRATIONS * HV_STACKS)

/**
 * struct hv_secret - what a module of class S has instead of data. M has the text and these pages
 * only, at these linear addresses. In class D all is 0.
 * @constants:	@constant_pages that nobody writes
 * @private:	the private pages, all of which are there; first the stacks
 * @exchange:	@exchange_pages, which M shares with the kernel
 * @gate:	a return instruction of the kernel's, which returns to the caller of an entry
 * @stub:	offset into the text: where the kernel sees what it has interrupted
 * @stacks:	how many there are, of @stack_pages each
 */
struct hv_secret {
	u64 constants;
	u64 private;
	u64 exchange;
	u64 gate;
	u32 constant_pages;
	u32 exchange_pages;
	u32 stub;
	u16 stacks;
	u16 stack_pages;
};

/**
 * struct hv_registration - what the guard has to know about a module before it is entered. It is
 * in physically contiguous memory, from the beginning of a page.
 * @text:	linear address of the text, the beginning of a page
 * @text_pages:	the kernel frees none of them while the module is registered
 * @data_count:	other pages of the module's own, as M is to find them
 * @private_count: pages that only M has; their contents are cleared in the end
 * @init:	offset into the text, or HV_NOWHERE
 * @exit:	the same
 * @class:	enum border_class; in class S, @data_count is 0
 * @words:	physical addresses of the text and then of the constants; @data_count struct
 *		hv_page; physical addresses of private pages and then of the exchange;
 *		@entry_count offsets into the text, sorted; @bug_count offsets, sorted; @fixup_count
 *		struct hv_fixup, sorted by @from; @privilege_count struct hv_privilege
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
	u64 class;
	struct hv_secret secret;
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
	       ((u64)registration->text_pages + registration->secret.constant_pages) * sizeof(u64) +
	       registration->data_count * sizeof(struct hv_page) +
	       ((u64)registration->private_count + registration->secret.exchange_pages) *
		       sizeof(u64) +
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
 * @texts:	physical addresses of the golden frames: of the text, and of constants
 * @frozen:	their number
 * @shadows:	the shadow frames
 * @datas:	other pages of its own
 * @privates:	physical addresses of the private frames
 * @exchanges:	the same of the exchange
 * @fixups:	what was registered of them: @reg is used here
 * @border_fixups: the same as linear addresses, for @module
 * @pool:	the activations that it can have, @pool_size of them
 * @view:	M's nested page table
 * @lowered_view: L's; 0 in class S
 * @space:	class S: the top level of M's page table
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
	u32 frozen;
	u32 pool_size;
	struct border_activation *pool;
	u8 *shadows;
	const struct hv_page *datas;
	const u64 *privates;
	const u64 *exchanges;
	struct hv_fixup *fixups;
	struct border_fixup *border_fixups;
	u64 view;
	u64 lowered_view;
	u64 *space;
	u64 leaving;
	struct hv_privilege *privileges;
	u32 privilege_count;
	u32 privilege_mask;
	u8 *iopm;
	u8 *msrpm;
};

static inline bool hv_is_secret(const struct hv_guarded *guarded)
{
	return guarded->module.class == CLASS_S;
}

/* All that register.c, nested.c and space.c change. */
extern u8 hv_views_lock;
/* Grows with each change of a view. */
extern u32 hv_views_changed;
extern struct hv_guarded hv_guarded[HV_REGISTRATIONS];

/* What M had: all registers at an interrupt, at a call those that a function preserves. */
struct hv_saved {
	u64 regs[16];
	u64 rflags;
};

extern struct hv_saved hv_saved[HV_ALL_ACTIVATIONS];

/* reset.c */
/* Clears the private frames, and in class S the saved registers. */
void hv_clear_secrets(const struct hv_guarded *guarded);

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
/* Whether the kernel cannot write a page, nor read its contents. */
bool hv_nested_hides(u64 address);
/*
 * hv_nested_hide() is called for each private frame before an entry hides it, and
 * hv_nested_hide_none() when all are plain again.
 */
void hv_nested_hide(u64 frame);
void hv_nested_hide_none(void);
/*
 * A bit for each hash of a private frame. A walk of the guest's page table asks five times, and
 * looks at K's entry only if the bit is set.
 */
extern u64 hv_nested_hidden[64];

static inline u32 hv_nested_hash(u64 address)
{
	return (address >> 12 ^ address >> 24) & 0xfff;
}

static inline bool hv_nested_is_private(u64 address)
{
	u32 hash = hv_nested_hash(address);

	return __atomic_load_n(&hv_nested_hidden[hash / 64], __ATOMIC_ACQUIRE) >> hash % 64 & 1 &&
	       hv_nested_hides(address);
}

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

/* secret.c */
/* The views and address space of M in class S. Returns false without memory. */
bool hv_secret_make(struct hv_guarded *guarded);
void hv_secret_free(struct hv_guarded *guarded);
/* Lets M of class S have the module's pages, or not. */
void hv_secret_open(struct hv_guarded *guarded, bool open);
void hv_secret_clear_stack(const struct hv_guarded *guarded, u32 activation);

/* The last word of a private stack. */
static inline u64 *hv_secret_stack_end(const struct hv_guarded *guarded, u32 activation)
{
	u32 last = (activation + 1) * guarded->copy->secret.stack_pages - 1;

	return (u64 *)hv_guest_memory(guarded->privates[last]) + 511;
}

/* register.c */
/* K executes the shadow text of @guarded on this CPU (L); NULL: none. */
void hv_lower(struct hv_cpu *cpu, const struct hv_guarded *guarded);
void hv_register_start(struct hv_cpu *cpu);
void hv_register_stop(struct hv_cpu *cpu);
s64 hv_register_call(struct hv_cpu *cpu, u64 number, u64 *b, u64 c);
/* An event of a registration that a crossing has caused. */
void hv_register_change(struct hv_cpu *cpu, struct hv_guarded *guarded, u8 event);
extern struct border_activation hv_activations[HV_ALL_ACTIVATIONS];

/* The module that runs on this CPU; NULL in K. */
static inline const struct hv_guarded *hv_current(const struct hv_cpu *cpu)
{
	return cpu->border.view == VIEW_K ? NULL : cpu->guarded;
}

static inline void hv_border_begin(struct border *border, struct hv_cpu *cpu,
				   struct hv_guarded *guarded)
{
	border->cpu = &cpu->border;
	border->activations = guarded->pool;
	border->activation_count = guarded->pool_size;
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
