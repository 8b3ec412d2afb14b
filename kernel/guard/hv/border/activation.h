/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The automaton of an activation: one entry into a module, from its border-in call to its
 * border-out ret. It is bound to a stack of the kernel and not to a CPU: it may leave M on one
 * CPU and return on another one. Activations nest: while one is out, the kernel may call the
 * module again on the same stack, and interrupts may do so on any stack.
 *
 * The state is one word. It changes by compare-and-swap, but while it is IN, the CPU that it names
 * stores the next one: nobody else changes it then. The word has a counter that grows with each
 * change: a CPU that read the word, then the record, and then exchanges the word, knows that the
 * record was the one that belongs to the word. The record is written only by the CPU that the state
 * IN names.
 */
#ifndef GUARD_BORDER_ACTIVATION_H
#define GUARD_BORDER_ACTIVATION_H

#include "guard/hv/border/types.h"

enum activation_state {
	ACTIVATION_NEVER,	/* no state: what the automaton does not allow */
	ACTIVATION_FREE,
	ACTIVATION_IN,		/* in M, on the CPU that the word names */
	ACTIVATION_OUT_CALL,	/* it called the kernel */
	ACTIVATION_OUT_INT,	/* it was interrupted */
	ACTIVATION_DEAD,	/* it did not return, and never will */
	ACTIVATION_STATES
};

enum activation_event {
	ACTIVATION_CLAIM,	/* border-in call */
	ACTIVATION_RESUME,	/* border-in ret, border-in rti */
	ACTIVATION_CALL,	/* border-out call */
	ACTIVATION_INTERRUPT,	/* border-out int */
	ACTIVATION_RETURN,	/* border-out ret */
	ACTIVATION_DIE,		/* suspicious activity, a revocation, or its stack was unwound */
	ACTIVATION_SWEEP,	/* the registration is thawed */
	ACTIVATION_EVENTS
};

struct border_activation {
	u64 word;
	/*
	 * "exit" is where M leaves at the border-out ret, and "back" where the kernel must return
	 * to after a border-out call or int.
	 */
	struct border_place exit;
	struct border_place back;
	u64 stack;	/* of the kernel; back is on it */
	u8 cause;	/* of a border-out int */
	u8 entry;	/* the kind of the entry point */
	/*
	 * Class S, in which the kernel sees no place of M's: "home" is where the kernel continues
	 * after the border-out ret, the gate, with RSP as it was at the entry; "inside" is where
	 * M continues. In class D, M and the kernel continue where the other one was.
	 */
	struct border_place home;
	struct border_place inside;
} __aligned(128);	/* an index is a shift */

static inline u8 word_state(u64 word)
{
	return word & 0xff;
}

static inline u8 word_cpu(u64 word)
{
	return word >> 8 & 0xff;
}

static inline u8 word_registration(u64 word)
{
	return word >> 16 & 0xff;
}

static inline u32 word_count(u64 word)
{
	return word >> 32;
}

/* Whose a word is, as the word has it. */
#define WORD_CPU		0xff00u
#define WORD_REGISTRATION	0xff0000u

static __always_inline u32 word_who(u8 cpu, u8 registration)
{
	return (u32)cpu << 8 | (u32)registration << 16;
}

/* @who: the parts that the state has */
static __always_inline u64 word_make(u8 state, u32 who, u32 count)
{
	return state | who | (u64)count << 32;
}

/* The first word of each activation of the pool. */
#define ACTIVATION_FIRST	((u64)ACTIVATION_FREE)

/*
 * Entries that are not named are ACTIVATION_NEVER. A dead activation can be claimed like a free
 * one.
 */
static const u8 activation_next[ACTIVATION_STATES][ACTIVATION_EVENTS] = {
	[ACTIVATION_FREE] = {
		[ACTIVATION_CLAIM] = ACTIVATION_IN,
	},
	[ACTIVATION_IN] = {
		[ACTIVATION_CALL] = ACTIVATION_OUT_CALL,
		[ACTIVATION_INTERRUPT] = ACTIVATION_OUT_INT,
		[ACTIVATION_RETURN] = ACTIVATION_FREE,
		[ACTIVATION_DIE] = ACTIVATION_DEAD,
	},
	[ACTIVATION_OUT_CALL] = {
		[ACTIVATION_RESUME] = ACTIVATION_IN,
		[ACTIVATION_DIE] = ACTIVATION_DEAD,
		[ACTIVATION_SWEEP] = ACTIVATION_FREE,
	},
	[ACTIVATION_OUT_INT] = {
		[ACTIVATION_RESUME] = ACTIVATION_IN,
		[ACTIVATION_DIE] = ACTIVATION_DEAD,
		[ACTIVATION_SWEEP] = ACTIVATION_FREE,
	},
	[ACTIVATION_DEAD] = {
		[ACTIVATION_CLAIM] = ACTIVATION_IN,
		[ACTIVATION_SWEEP] = ACTIVATION_FREE,
	},
};

/* The parts of @who that a word has. An activation in M belongs to its CPU, too. */
static __always_inline u32 activation_whose(u8 state, u32 who)
{
	if (state == ACTIVATION_IN)
		return who;
	return state == ACTIVATION_FREE ? 0 : who & WORD_REGISTRATION;
}

/* A step from @state, which a compiler knows as it knows @event. */
static __always_inline u64 activation_step_from(u8 state, u64 word, u8 event, u32 who)
{
	u32 own = word_make(state, activation_whose(state, who), 0);
	u8 next = activation_next[state][event];

	if (next == ACTIVATION_NEVER)
		return 0;
	if (event != ACTIVATION_CLAIM && (u32)word != own)
		return 0;
	return word_make(next, activation_whose(next, who), word_count(word) + 1);
}

/*
 * The word after @event on the CPU and of the registration @who; 0, which is no word, if the
 * automaton does not allow it.
 */
static __always_inline u64 activation_step(u64 word, u8 event, u32 who)
{
	switch (word_state(word)) {
	case ACTIVATION_FREE:
		return activation_step_from(ACTIVATION_FREE, word, event, who);
	case ACTIVATION_IN:
		return activation_step_from(ACTIVATION_IN, word, event, who);
	case ACTIVATION_OUT_CALL:
		return activation_step_from(ACTIVATION_OUT_CALL, word, event, who);
	case ACTIVATION_OUT_INT:
		return activation_step_from(ACTIVATION_OUT_INT, word, event, who);
	case ACTIVATION_DEAD:
		return activation_step_from(ACTIVATION_DEAD, word, event, who);
	}
	return 0;
}

static __always_inline u64 activation_read(const struct border_activation *activation)
{
	return __atomic_load_n(&activation->word, __ATOMIC_ACQUIRE);
}

/* The only way in which a word that is not IN changes. Returns whether it was still @old. */
static __always_inline int activation_change(struct border_activation *activation, u64 old,
					     u64 next)
{
	return next && __atomic_compare_exchange_n(&activation->word, &old, next, 0,
						   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* The same on the CPU that the state IN names: nobody else changes the word. */
static __always_inline void activation_leave(struct border_activation *activation, u64 next)
{
	if (next)
		__atomic_store_n(&activation->word, next, __ATOMIC_RELEASE);
}

#endif /* GUARD_BORDER_ACTIVATION_H */
