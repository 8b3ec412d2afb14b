/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The world in which the border control is explored: the automata as the hypervisor compiles
 * them, a machine with a TLB that keeps whatever it was not told to flush, and an adversary who
 * has the kernel. docs/guard-border.md describes it, with what it leaves out.
 */
#ifndef TESTS_GUARD_MODEL_WORLD_H
#define TESTS_GUARD_MODEL_WORLD_H

#include "guard/hv/border/border.h"

#include <stdbool.h>
#include <stdio.h>

#define CPUS		2
#define STACKS		2	/* of two threads */
#define LEVELS		2	/* on each stack: a nested entry is one level deeper */
#define ACTIVATIONS	2
#define MODULES		2

/* TEXT_1 is the text of the second module. Private frames and registers are the first one's. */
enum frame { TEXT, SECRET, BAR, TEXT_1, FRAMES };

enum rights { R = 1, W = 2, X = 4 };

/* The views of memory: K, M, and the IOMMU's. */
enum view { IN_K = VIEW_K, IN_M = VIEW_M, IN_DMA, VIEWS };

/* ---- addresses, each of which fits a byte ---- */

enum rip {
	/* In a module's text, from text_of(). */
	INIT = 1, ENTRY, EXIT,
	CALLED = 4,		/* after a call of the kernel */
	INTERRUPTED = 6,	/* an instruction with a fixup, and in the bug table */
	AFTER_BUG = INTERRUPTED + UD2_LENGTH,
	FIXUP = 10,
	STUB = 12,
	WRONG = 14,
	TEXT_LENGTH = 32,
	/* Outside. */
	FUNCTION = 0x80,	/* of the kernel */
	CALLER = 0x82,
	GATE = 0x84,
	LEAF = 0x86,		/* a function of the kernel's that M executes */
};

static inline u64 text_of(int module)
{
	return 0x10 + module * TEXT_LENGTH;
}

#define STACK_SIZE	0x60

/* RSP at an entry, and deeper, where M calls the kernel, or where it is interrupted. */
static inline u64 entry_rsp(int stack, int level)
{
	return 8 + stack * STACK_SIZE + 0x50 - level * 0x20;
}

/* A function that is called from there has the RSP of the next level. */
static inline u64 out_rsp(int stack, int level)
{
	return entry_rsp(stack, level) - 0x18;
}

/* Above all stacks of the kernel. */
#define PRIVATE_STACKS	0xc8

/* The name of the stack with this RSP. */
static inline u64 stack_of(u64 rsp)
{
	return rsp >= 8 + STACK_SIZE ? 1 : 0;
}

/* ---- the state ---- */

/* What a CPU has begun in an exit handler: between its two halves, others act. */
enum pending_kind { NOTHING, CLAIM, ACKNOWLEDGE };

struct pending {
	u8 kind;
	u8 module;
	struct border_claim claim;
	struct border_exit exit;
	u32 generation;
};

/* What really happened to an activation, which the automata must agree with. */
enum ghost_state { GONE, INSIDE, CALLING, STOPPED };

struct ghost {
	u8 state;
	u8 module;
	u8 cause;
	u8 is_saved;			/* its registers */
	struct border_place back;	/* where the kernel returns to */
	struct border_place inside;	/* where the module continues then */
};

struct world {
	/* The automata. */
	struct border_registration registrations[MODULES];
	struct border_activation activations[ACTIVATIONS];
	u64 used;			/* of these */
	struct border_cpu cpus[CPUS];
	struct pending pending[CPUS + 1];	/* the last one is the IOMMU's */

	/* The machine. */
	u8 views[VIEWS][FRAMES];
	u8 tlb[CPUS][2][FRAMES];	/* rights that a cached entry may give, by tag */
	u8 iotlb[FRAMES];
	u8 raised[CPUS];
	u8 is_evil[MODULES];		/* the text is not the registered one */
	u8 is_settled[MODULES];		/* all have flushed since the module was frozen */
	u8 was_begun[MODULES];		/* its init was entered since it was armed */
	u8 was_stopped[MODULES];	/* for good */
	u8 opened[MODULES];		/* the privileges whose pages M has */
	u8 has_secret;			/* the private frame has the module's data */
	u8 is_locked, is_moved;		/* configuration space; the BAR lies elsewhere */
	u8 m_is_stale[CPUS];		/* M's tag may have a translation that was ended */
	u8 must_invalidate[CPUS];	/* the kernel's shootdown has not reached this CPU */
	struct ghost ghosts[ACTIVATIONS];

	/* The verdict; not a part of the state. */
	const char *violated;
	char why[120];
};

struct config {
	int modules;
	int cpus, stacks;	/* those that the adversary uses */
	u8 class, choice;
	bool has_iommu;
	u8 from;		/* the state of the registrations in which the exploration starts */
};

extern struct config config;

/* ---- events ---- */

enum event_kind {
	FETCH,		/* K fetches from the text: the first half of a border-in */
	COMMIT,		/* the second half of what the CPU has begun */
	FLUSH,		/* the first half of an acknowledgment */
	LEAVE,		/* M is left */
	WRITE,		/* K writes to the text, by an entry of the TLB */
	DMA,		/* a device does */
	RELOAD,		/* the text is again the registered one */
	WRITE_FAULT,	/* a write to the frozen text */
	MOVE_BAR,
	UNMAP,		/* the kernel ends a translation, and asks all CPUs to invalidate it */
	INVALIDATE,	/* a CPU does so */
	CALL,		/* of the loader or the administrator, in any order */
	CALL_MEANWHILE,	/* the same, and in the middle of its step @cpu begins init */
};

struct event {
	u8 kind;
	u8 cpu;		/* CPUS: the IOMMU */
	u8 module;
	u8 call;	/* enum registration_event_kind */
	u8 ghost;	/* LEAVE: what becomes of the activation */
	u8 crossing;	/* LEAVE: what it is; BORDER_REFUSED if it is suspicious */
	struct border_exit exit;
};

#define EVENTS	256

/* Lists what may happen in this state, and returns the number. */
int adversary_events(const struct world *w, struct event *events);

/* ---- the parts ---- */

/* The first state. */
void world_init(struct world *w);

/* Lets an event happen, and verifies the invariants. With @log, prints it with its actions. */
void world_apply(struct world *w, const struct event *event, FILE *log);

void world_check(struct world *w);

/* Ends everything by the administrator's means, and verifies that nothing is left. */
void world_drain(struct world *w, FILE *log);

/* Returns whether the registration is one of those under which M may be entered. */
static inline bool may_run(const struct border_registration *registration)
{
	return registration->state == REGISTRATION_ARMED ||
	       registration->state == REGISTRATION_SEALED;
}

void violate(struct world *w, const char *invariant, const char *why, ...)
	__attribute__((format(printf, 3, 4)));

const struct border_module *world_module(int module);

u64 world_present(void);

static inline int text_frame(int module)
{
	return module ? TEXT_1 : TEXT;
}

/* ---- what is printed of a way (print.c) ---- */

const char *crossing_name(u8 crossing);
const char *action_name(u32 kind);
const char *state_name(u8 state);	/* of a registration */

/* Prints an event that is about to happen. */
void print_event(const struct world *w, const struct event *event, FILE *log);

/* ---- packed states ---- */

struct key {
	u8 bytes[88];
};

void key_pack(struct key *key, const struct world *w);
void key_unpack(struct world *w, const struct key *key);

#endif
