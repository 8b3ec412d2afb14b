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
	 * "home" is where the kernel continues after the border-out ret, and "exit" where M
	 * then leaves: in class D the same place. "back" is where the kernel must return to
	 * after a border-out call or int, and "inside" where M then continues: in class D the
	 * same place, unless a fixup moves it. In class S the kernel sees neither exit nor inside,
	 * and home is the gate, with RSP as it was at the entry.
	 */
	struct border_place home;
	struct border_place exit;
	struct border_place back;
	struct border_place inside;
	u64 stack;	/* of the kernel; home and back are on it */
	u8 cause;	/* of a border-out int */
	u8 entry;	/* the kind of the entry point */
};

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

static __always_inline u64 word_make(u8 state, u8 cpu, u8 registration, u32 count)
{
	return state | (u32)cpu << 8 | (u32)registration << 16 | (u64)count << 32;
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

/* The word after @event on @cpu; 0, which is no word, if the automaton does not allow it. */
static __always_inline u64 activation_step(u64 word, u8 event, u8 cpu, u8 registration)
{
	u8 state = word_state(word);
	u8 next = activation_next[state][event];
	u32 count = word_count(word) + 1;

	if (next == ACTIVATION_NEVER)
		return 0;
	/* An activation in M belongs to its CPU, and one that is out to its registration. */
	if (state == ACTIVATION_IN && word_cpu(word) != cpu)
		return 0;
	if (event != ACTIVATION_CLAIM && word_registration(word) != registration)
		return 0;
	if (next == ACTIVATION_IN)
		return word_make(next, cpu, registration, count);
	if (next == ACTIVATION_FREE)
		return word_make(next, 0, 0, count);
	return word_make(next, 0, registration, count);
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
