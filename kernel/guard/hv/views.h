/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Exec views: modules whose text runs with privileges, and the ways into it.
 *
 * There are two views of memory. In K, the kernel's, the text of a guarded module is not
 * executable, and leads to a shadow: a copy that the kernel may read and patch (patch.c). In M, one
 * for each module, nothing is executable but its text, the golden frames, which nobody else
 * changes, and the guard's copies of a few functions of the kernel's (leaf.c); and only M has the
 * private frames. So each way across the border is a fetch that faults, an interrupt or an
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
 * There are two ways to register a module. Before the seal, a trusted caller can tell all that M
 * has to know (struct hv_registration). Or the module was described before the seal. Then Linux
 * tells, at any time, where it has loaded the module (struct hv_load); the frozen frames are
 * compared with the description, from which all comes that M knows.
 *
 * A module of class S keeps secrets. Its address space has its own pages only, of which it shares
 * one part with the kernel, the exchange; it works on private stacks, and the kernel sees none of
 * its registers. It has no L: what is refused raises #GP.
 *
 * register.c steps a registration, and frames.c changes the views; describe.c has the descriptions,
 * patch.c the kernel's patches; leaf.c has the kernel's functions that M executes; privilege/ has
 * the privileges other than memory; nested.c has the nested page tables, space.c and secret.c M's
 * address space, for class D and class S; suspect.c has what may follow suspicious activity,
 * clear.c ends secrets, and tally.c counts crossings by function.
 */
#ifndef GUARD_HV_VIEWS_H
#define GUARD_HV_VIEWS_H

/* The loader has these, too. */
#define HV_REGISTRATIONS	8

#ifndef __ASSEMBLER__

#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/types.h>

#include "guard/hv/border/border.h"
#include "guard/hv/content.h"
#include "guard/hv/hv.h"
#include "guard/hv/privilege/privilege.h"

/* The most bytes of a struct hv_registration. */
#define HV_REGISTRATION_SIZE	0x10000

/* Calls, interrupts and nested entries of all guarded modules of class D at a time. */
#define HV_ACTIVATIONS		64
/* The most private stacks of a module of class S: it has as many activations, of its own. */
#define HV_STACKS		4
#define HV_ALL_ACTIVATIONS	(HV_ACTIVATIONS + HV_REGISTRATIONS * HV_STACKS)

/* The parts of a module that are frozen besides its text. Linux gets those of init back. */
enum hv_range_kind {
	HV_RODATA,
	HV_INIT_TEXT,
	HV_INIT_RODATA,
	HV_RANGES,
};

struct hv_range {
	u64 address;
	u32 pages;
	u32 reserved;
};

/**
 * struct hv_secret - what a module of class S has instead of data. M has the text, the constants
 * (HV_RODATA) and these pages only, at these linear addresses. In class D all is 0.
 * @private:	the private pages, the stacks first
 * @exchange:	@exchange_pages, which M shares with the kernel
 * @gate:	a return instruction of the kernel's, which returns to the caller of an entry
 * @stub:	offset into the text: where the kernel sees what it has interrupted
 * @stacks:	how many there are, of @stack_pages each
 */
struct hv_secret {
	u64 private;
	u64 exchange;
	u64 gate;
	u32 exchange_pages;
	u32 stub;
	u32 stacks;
	u32 stack_pages;
};

/**
 * struct hv_registration - what the guard has to know about a module before it is entered. It is
 * in physically contiguous memory, from the beginning of a page.
 * @text:	linear address of the text, the beginning of a page
 * @text_pages:	the kernel frees none of them while the module is registered
 * @data_count:	other pages of the module's own, as M is to find them
 * @private_count: pages that only M has; their contents are cleared in the end
 * @choice:	enum border_choice, for suspicious activity
 * @init:	offset into the text, or HV_NOWHERE
 * @exit:	the same
 * @class:	enum border_class; in class S, @data_count is 0, and there is no init
 * @ranges:	by enum hv_range_kind; without pages if the module has none
 * @words:	physical addresses of @text_pages and of the pages of @ranges; @data_count struct
 *		hv_page; physical addresses of private pages and then of the exchange; @entry_count
 *		offsets into the text, sorted; @bug_count offsets, sorted; @fixup_count struct
 *		border_fixup with offsets; @privilege_count struct hv_privilege
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
	u32 choice;
	u64 init;
	u64 exit;
	u64 class;
	struct hv_range ranges[HV_RANGES];
	struct hv_secret secret;
	u64 words[];
};

/* @entry: an entry of a page table: the physical address, with rights */
struct hv_page {
	u64 address;
	u64 entry;
};

/* The pages of the text and of @ranges. */
static inline u64 hv_registration_frames(const struct hv_registration *registration)
{
	u64 frames = registration->text_pages;
	u32 i;

	for (i = 0; i < HV_RANGES; i++)
		frames += registration->ranges[i].pages;
	return frames;
}

/* The number of golden frames that are not init's; they come first. */
static inline u32 hv_registration_lasting(const struct hv_registration *registration)
{
	return registration->text_pages + registration->ranges[HV_RODATA].pages;
}

static inline u64 hv_registration_size(const struct hv_registration *registration)
{
	return sizeof(*registration) +
	       hv_registration_frames(registration) * sizeof(u64) +
	       registration->data_count * sizeof(struct hv_page) +
	       ((u64)registration->private_count + registration->secret.exchange_pages) *
		       sizeof(u64) +
	       ((u64)registration->entry_count + registration->bug_count) * sizeof(u64) +
	       registration->fixup_count * sizeof(struct border_fixup) +
	       registration->privilege_count * sizeof(struct hv_privilege);
}

/**
 * struct hv_description - a description (content.h) in the memory of the guest
 * @size:	in bytes
 * @privileges:	physical address of a page with @privilege_count struct hv_privilege, or 0
 * @has_tally:	its crossings are to be counted by function
 * @choice:	enum border_choice, for suspicious activity
 * @frames:	physical addresses of its pages
 * @leaves:	physical address of a page that begins with a struct hv_leaf_list, or 0
 */
struct hv_description {
	u64 size;
	u64 privileges;
	u32 privilege_count;
	u16 has_tally;
	u16 choice;
	u64 frames[508];
	u64 leaves;
};

/**
 * struct hv_leaf - a function of the kernel's that M executes without leaving (leaf.c)
 * @address:	linear
 * @size:	in bytes
 * @reserved:	0
 * @hash:	SHA-256 of its bytes
 */
struct hv_leaf {
	u64 address;
	u32 size;
	u32 reserved;
	u8 hash[SHA256_SIZE];
};

#define HV_LEAVES	32
#define HV_LEAF_PAGES	16

struct hv_leaf_list {
	u64 count;
	struct hv_leaf leaves[HV_LEAVES];
};

static_assert(sizeof(struct hv_leaf_list) <= CONTENT_PAGE);

/**
 * struct hv_leaves - the leaves of a module, in a page of the guard's
 * @hashes:	a bit for each hash of a page that has some of them
 * @pages:	of each page that has some of them, the linear address, the kernel's frame, and the
 *		guard's copy
 */
struct hv_leaves {
	u64 hashes;
	u32 count;
	u32 page_count;
	struct hv_leaf list[HV_LEAVES];
	struct hv_leaf_page {
		u64 address;
		u64 frame;
		u8 *copy;
	} pages[HV_LEAF_PAGES];
};

static_assert(sizeof(struct hv_leaves) <= CONTENT_PAGE);

/* The regions of which Linux names the pages: the first ones. */
#define HV_LOAD_REGIONS		(CONTENT_INIT_RODATA + 1)
#define HV_LOAD_FRAMES		495

/**
 * struct hv_load - where Linux has loaded a module that was described: one page. The guard believes
 * none of it, and compares what it finds there
 * @regions:	by enum content_region; of the first HV_LOAD_REGIONS whole pages. A region of
 *		@size 0 does not exist
 * @is_live:	init has returned before; not once the guard is sealed
 * @frames:	physical addresses of the pages of the first HV_LOAD_REGIONS
 */
struct hv_load {
	struct {
		u64 address;
		u64 size;
	} regions[CONTENT_REGIONS];
	u64 is_live;
	u64 frames[HV_LOAD_FRAMES];
};

static_assert(sizeof(struct hv_description) == CONTENT_PAGE);
static_assert(CONTENT_MAX_SIZE / CONTENT_PAGE <= 508);
static_assert(sizeof(struct hv_load) == CONTENT_PAGE);

/**
 * struct hv_tally_row - how often the border was crossed at one function (tally.c)
 * @address:	of an entry point, or of a function outside that the module calls; 0: the row is
 *		free, or is HV_TALLY_OTHERS
 * @crossings:	by enum border_crossing
 */
struct hv_tally_row {
	u64 address;
	u64 crossings[BORDER_OUT_INT + 1];
};

#define HV_TALLY_ROWS	128
#define HV_TALLY_OTHERS	0	/* the row of all functions for which there was no other */
#define HV_TALLY_PAGES	(HV_TALLY_ROWS * sizeof(struct hv_tally_row) / CONTENT_PAGE)

/**
 * struct hv_known - a description that the guard has, from before the seal
 * @content:	its parts
 * @blob:	the guard's copy; NULL: there is none
 * @privileges:	what the module gets when it is loaded
 * @tally:	HV_TALLY_ROWS, since the module was last loaded; or NULL
 * @memory:	where the module is, while it is loaded; @pages are its golden frames
 * @stopped:	it was stopped for good, and is not loaded any more
 * @choice:	enum border_choice, for suspicious activity
 * @leaves:	what M executes of the kernel's functions, or NULL
 */
struct hv_known {
	struct content content;
	void *blob;
	u32 blob_pages;
	struct hv_privilege privileges[HV_PRIVILEGES];
	u32 privilege_count;
	struct hv_tally_row *tally;
	struct content_memory memory[CONTENT_REGIONS];
	bool stopped;
	u8 choice;
	struct hv_leaves *leaves;
};

/**
 * struct hv_guarded - a module, while it is registered
 * @used:	otherwise nothing here has a meaning
 * @number:	its index; @who: the same, as the word of an activation has it
 * @size:	of its text; 0 while the entry is unused, or the module leaves
 * @init_size:	of its init text; 0 once that is given back, or the module leaves
 * @border:	its automaton
 * @module:	what border control knows about it; @found: of its entries
 * @copy:	the guard's own copy of what was registered, or was made of a description
 * @known:	the description of which it was made, or NULL
 * @frames:	physical addresses of the golden frames: of text, and of copy->ranges
 * @golden:	how many of them are golden: the first ones
 * @mapped:	and how many are in M's page tables
 * @shadows:	their shadows
 * @datas:	other pages of its own
 * @privates:	physical addresses of the private frames
 * @exchanges:	the same of the exchange
 * @pool:	the activations that it can have, @pool_size of them
 * @first:	the number of the first one in all pools
 * @in_use:	of the pool: border_mark()
 * @view:	M's nested page table
 * @lowered_view: L's; 0 in class S
 * @space:	class S: the top level of M's page table
 * @releasing:	CPUs that may still use init's frames, or then their shadows
 * @leaving:	CPUs that may still use what is to be given back
 * @carries:	a CPU changes the golden frames: no other one enters M (patch.c)
 * @pending:	the kernel's patches are not yet in the golden frames
 * @waits:	how often a CPU did not enter M because of that
 * @privileges:	what it has besides memory
 * @privilege_mask: their kinds
 * @iopm:	M's I/O permission map, if it has ports; @msrpm: that of MSRs
 * @tally:	that of @known
 * @differs:	the linear address at which its content is not the described one; or 0
 * @leaves:	those of @known
 */
struct hv_guarded {
	bool used;
	u8 number;
	u32 who;
	u64 size;
	u64 init_size;
	struct border_registration border;
	struct border_module module;
	u64 found[BORDER_FOUND];
	struct hv_registration *copy;
	struct hv_known *known;
	const u64 *frames;
	u32 golden;
	u32 mapped;
	u8 **shadows;
	const struct hv_page *datas;
	const u64 *privates;
	const u64 *exchanges;
	u32 pool_size;
	u32 first;
	struct border_activation *pool;
	u64 *in_use;
	u64 view;
	u64 lowered_view;
	u64 *space;
	u64 releasing;
	u64 leaving;
	bool carries;
	bool pending;
	u32 waits;
	struct hv_privilege *privileges;
	u32 privilege_count;
	u32 privilege_mask;
	u8 *iopm;
	u8 *msrpm;
	struct hv_tally_row *tally;
	u64 differs;
	const struct hv_leaves *leaves;
};

static inline bool hv_is_secret(const struct hv_guarded *guarded)
{
	return guarded->module.class == CLASS_S;
}

/*
 * Protects all that register.c, frames.c, nested.c, describe.c and privilege/ change. A CPU adds
 * copies to its own page table in M (space.c) without it.
 */
extern u8 hv_views_lock;
/* Grows with each change of a view. */
extern u32 hv_views_changed;
/* A bit for each CPU that is in the guard. */
extern u64 hv_present;
extern struct hv_guarded hv_guarded[HV_REGISTRATIONS];

/*
 * The registers of M: all of them at an interrupt, at a call those that a function preserves. RSP
 * is a part of the place, and so the flags have its place here.
 */
struct hv_saved {
	u64 regs[16];
};

#define HV_SAVED_RFLAGS		4

extern struct hv_saved hv_saved[HV_ALL_ACTIVATIONS];

/* nested.c */
/*
 * Returns the physical address of a nested page table like K's, with @rights in each entry of the
 * top level; 0 without memory.
 */
u64 hv_nested_make(u64 rights);
void hv_nested_free(u64 root);
/*
 * Returns the entry of a nested page table that maps 4 KB (@shift 12) or 2 MB (21) at a physical
 * address of the guest, or NULL without memory. It leads to nothing that another nested page table
 * has, too. Once it has succeeded for an entry, it always does: in K and the step until what is
 * there is joined.
 */
u64 *hv_nested_entry(u64 root, u64 address, u32 shift);
/*
 * K and the step give back the tables that they have for the 2 MB around a physical address of the
 * guest, if there is nothing in them but the kernel's own memory and devices, as at launch. Views
 * of modules follow.
 */
void hv_nested_join(u64 address);
/* The nested page table of a view gets what K has at this page, but not executable. */
void hv_nested_follow(u64 root, u64 address);
/* Returns the entry that K has for a page. */
u64 hv_nested_look(u64 address);
/* Whether a nested page table leads from a physical address to that one, and lets it be written. */
bool hv_nested_is_plain(u64 root, u64 address);
/* Whether a page is read-only in K: what the kernel writes there is dropped. */
bool hv_nested_drops_writes(u64 address);
/*
 * With the lock: a page that the single step has to write to the sink, and a step has written, as
 * the processor notes in the entry (APM 5.4.2); or 0. Each is returned once. Where 2 MB are hidden
 * by one entry, all such share a table: then it may be the page at the same place in another 2 MB.
 */
u64 hv_nested_take_written(void);
/*
 * hv_nested_hide() is called for each private frame before an entry hides it, and
 * hv_nested_hide_none() when all are plain again.
 */
void hv_nested_hide(u64 frame);
void hv_nested_hide_none(void);
#define HV_HIDDEN_WORDS		64

/*
 * A bit for each hash of a private frame. A walk of the guest's page table asks five times, and
 * looks at K's entry only if the bit is set.
 */
extern u64 hv_nested_hidden[HV_HIDDEN_WORDS];

static inline u32 hv_nested_hash(u64 address)
{
	return (address >> 12 ^ address >> 24) & (HV_HIDDEN_WORDS * 64 - 1);
}

static inline bool hv_nested_is_private(u64 address)
{
	u32 hash = hv_nested_hash(address);

	return __atomic_load_n(&hv_nested_hidden[hash / 64], __ATOMIC_ACQUIRE) >> hash % 64 & 1 &&
	       hv_nested_look(address) == (hv_config.zero_entry | HV_NPT_NO_EXECUTE);
}

/* space.c */
/* Once, before all else. */
void hv_space_init(void);
/* M's address space on this CPU, as the kernel's is now; and its end. */
void hv_space_start(struct hv_cpu *cpu);
void hv_space_stop(struct hv_cpu *cpu);
/*
 * Maps a page of the module's own, also on another CPU; @entry: 0 for none, which takes no memory,
 * @cr3: the kernel's on this CPU. Returns false without memory.
 */
bool hv_space_map(struct hv_cpu *cpu, u64 cr3, u64 address, u64 entry);
/* The nested page table of M has M's page tables. */
void hv_space_reveal(u64 root);
/* A fault of M: copies what the kernel's tables have. Returns whether there was something. */
bool hv_space_copy_entry(struct hv_cpu *cpu, u64 address);
void hv_space_clear_copies(struct hv_cpu *cpu);
/*
 * This CPU is in K, and flushes: its page table in M gives back the tables that lead to no page of
 * a module any more.
 */
void hv_space_prune(struct hv_cpu *cpu);
/* Nothing is from there on but M's page tables, somewhere. */
extern u64 hv_space_upper;

/* From this entry of the top level on, an address is the kernel's. */
#define HV_KERNEL_HALF	256

/*
 * The last entry on M's way to an address that is not the guard's, of a table whose entries are of
 * 2^@shift bytes. What M does not have yet it will copy from the kernel's page table. Returns
 * false if nothing is there, or a page of a guarded module.
 */
bool hv_space_entry(struct hv_cpu *cpu, u64 address, u64 *entry, u32 *shift);

/* Whether a physical address that M could not reach is where its page tables may be. */
static inline bool hv_space_is_beside(u64 physical)
{
	return physical >= hv_space_upper;
}

/* Whether a page of a guarded module is at this address in M's address space. */
bool hv_space_owns(const struct hv_cpu *cpu, u64 address);

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

	return (u64 *)hv_guest_memory(guarded->privates[last]) + HV_ENTRIES - 1;
}

/* clear.c */
/* Clears the private frames, and in class S the saved registers. */
void hv_clear_secrets(const struct hv_guarded *guarded);

/* describe.c: with the lock */
/* A copy of that size, and the shadows' addresses. Returns false without memory. */
bool hv_take_copy(struct hv_guarded *guarded, const struct hv_registration *sizes);
void hv_give_copy(struct hv_guarded *guarded);
/* Finds the parts of the copy. */
void hv_dissect(struct hv_guarded *guarded);
/* A golden frame's linear address, its place in the module (content.h), and if that is text. */
struct hv_place {
	u64 address;
	u32 region;
	u32 offset;
	bool is_text;
};

struct hv_place hv_place(const struct hv_guarded *guarded, u32 frame);
/* DESCRIBE and UNDESCRIBE; @b: RBX */
s64 hv_describe(struct hv_cpu *cpu, u64 *b, u64 at);
s64 hv_undescribe(u32 number);
bool hv_is_described(u32 number);
/* The tally of a module that is described, or NULL. */
const struct hv_tally_row *hv_tally_of(u32 number);
/* Makes the copy of a description and of a struct hv_load. Returns 0 or an error. */
s64 hv_compose(struct hv_guarded *guarded, u64 at);
/* Whether the golden frames have what was described, and K finds them at their addresses. */
struct content_finding hv_check_content(struct hv_cpu *cpu, const struct hv_guarded *guarded);

/* leaf.c: with the lock */
/*
 * Takes copies of the functions of a struct hv_leaf_list, which is at a physical address, by the
 * page table of @cr3. Returns 0, -ENOMEM, or -ENOEXEC: the function @which cannot be copied, or has
 * other bytes. In each case @taken is what is to be given back, unless it is NULL.
 */
s64 hv_leaves_take(struct hv_leaves **taken, u64 at, u64 cr3, u64 *which);
void hv_leaves_give(struct hv_leaves *leaves);
/* M's view gets them. Returns false without memory. */
bool hv_leaves_map(const struct hv_guarded *guarded);
/* Whether another module's pages, which are in M's page tables, include that linear address. */
bool hv_leaves_share(const struct hv_guarded *guarded, u64 page);
/* Whether a module that is described has a leaf in this frame of the kernel's. */
bool hv_leaf_has_frame(u64 frame);

static inline u64 hv_leaf_hash(u64 address)
{
	return BIT_ULL(address / HV_PAGE % 64);
}

/* Without the lock: the leaf at a linear address, or NULL; @leaves may be NULL. */
const struct hv_leaf *hv_leaf_find(const struct hv_leaves *leaves, u64 address);

static inline const struct hv_leaf *hv_leaf_at(const struct hv_leaves *leaves, u64 address)
{
	if (!leaves || !(leaves->hashes & hv_leaf_hash(address)))
		return NULL;
	return hv_leaf_find(leaves, address);
}

/*
 * The same: while the return address is in a leaf, replaces it by that of the leaf, and counts
 * @above RSP where that is.
 */
struct hv_unwound {
	u64 return_address;
	u64 above;
};

struct hv_unwound hv_leaf_unwind(struct hv_cpu *cpu, const struct hv_guarded *guarded, u64 rsp,
				 u64 return_address);

/* tally.c */
/* Counts a crossing of class D, before others may have the activation. Only with a tally. */
void hv_tally_add(struct hv_guarded *guarded, const struct border_activation *activation,
		  u8 crossing, u64 rip);
s64 hv_tally_read(const struct hv_tally_row *rows, u64 row, u64 word, u64 *value);

/* patch.c */
/* A step is done. */
void hv_patch_written(struct hv_cpu *cpu);
/* The module that has a golden frame at this physical address, or NULL. */
struct hv_guarded *hv_patch_owner(u64 address);
/* Patches are pending, and this CPU is about to enter M. Returns whether it may. */
bool hv_patch_carry(struct hv_cpu *cpu, struct hv_guarded *guarded);

/* frames.c: with the lock, but for hv_lower() */
/*
 * K and L have shadows instead of golden frames, and no private frames; M has nothing yet. In class
 * S it is closed already, and there is no L.
 */
void hv_frames_freeze(struct hv_guarded *guarded);
/* Gives M the golden and the private frames, or takes both away. */
void hv_frames_open(struct hv_guarded *guarded, bool open);
/* Gives M the golden frames from @first on, those of text to execute; or takes them away. */
void hv_frames_set_golden(struct hv_guarded *guarded, u32 first, bool open);
/* Gives the golden frames from @first on back to the kernel, with its patches. */
void hv_frames_thaw_golden(struct hv_guarded *guarded, u32 first);
/* Gives every frame back to the kernel. */
void hv_frames_thaw(struct hv_guarded *guarded);
/* K and the step join what they have divided for the frames, and for them alone. */
void hv_frames_join(const struct hv_guarded *guarded);
/* K executes the shadow text of @guarded on this CPU (L); NULL: none. */
void hv_lower(struct hv_cpu *cpu, const struct hv_guarded *guarded);

/* register.c */
void hv_register_start(struct hv_cpu *cpu);
void hv_register_stop(struct hv_cpu *cpu);
s64 hv_register_call(struct hv_cpu *cpu, u64 number, u64 *b, u64 c);
/*
 * An event of a registration that a crossing has caused. With EVENT_STOP the module is not entered
 * again, until the next launch.
 */
void hv_register_change(struct hv_cpu *cpu, struct hv_guarded *guarded, u8 event);
extern struct border_activation hv_activations[HV_ALL_ACTIVATIONS];
/* The first pool is that of class D, and others are those of registrations of class S. */
extern u64 hv_in_use[1 + HV_REGISTRATIONS];
static_assert(HV_ACTIVATIONS <= 64);

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
	border->used = guarded->in_use;
	border->registration = &guarded->border;
	border->module = &guarded->module;
	border->class = guarded->module.class;
	border->who = cpu->who | guarded->who;
	border->crossing = BORDER_REFUSED;
}

/* suspect.c: without the lock */
/* Suspicious activity that is no crossing (enum border_suspicion); @value is for the log. */
void hv_suspect(struct hv_cpu *cpu, struct hv_guarded *guarded, u8 kind, u64 value);
void hv_suspect_log(struct hv_cpu *cpu, const struct hv_guarded *guarded, u8 suspicion, u64 value);
/* Makes the kernel panic on this CPU, after all secrets were cleared. */
void hv_panic(struct hv_cpu *cpu);

/* cross.c */
/* A nested page fault at a fetch in K or L; @guarded: the module may be this one. */
struct hv_next hv_cross_fetch(struct hv_cpu *cpu, struct hv_guarded *guarded);
struct hv_next hv_cross_search(struct hv_cpu *cpu);
/* The CPU is in M, and has exited. */
struct hv_next hv_cross_exit(struct hv_cpu *cpu, u32 code);

#endif /* !__ASSEMBLER__ */

#endif /* GUARD_HV_VIEWS_H */
