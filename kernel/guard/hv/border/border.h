/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The six crossings, which step the three automata in the right order.
 *
 * A fetch of a module's text in K is a border-in, if it is one: border_match() looks for the
 * activation that it resumes, or for a free one if it is an entry point, and border_in() takes
 * that activation by one compare-and-swap and enters M. Between the two, other CPUs may do
 * anything. If one of them was faster, nothing has happened, and the guest executes its
 * instruction again.
 *
 * A fetch outside of the text in M, an interrupt and an exception in M are border-outs
 * (border_out()). No other CPU can take an activation that is IN. It can take one that is out,
 * and so ACT_PUBLISH comes after the activation's registers were saved. From then on nothing of
 * the activation is read.
 *
 * The actions are carried out before this CPU acknowledges a flush.
 *
 * The functions are in crossings.h. Its includer has border_act(),
 * border_read_stack() and border_is_leaf().
 */
#ifndef GUARD_BORDER_BORDER_H
#define GUARD_BORDER_BORDER_H

#include "guard/hv/border/actions.h"
#include "guard/hv/border/activation.h"
#include "guard/hv/border/cpu.h"
#include "guard/hv/border/module.h"
#include "guard/hv/border/registration.h"

/* What the hypervisor reads of the guest at an exit. */
struct border_exit {
	struct border_place at;
	u64 return_address;	/* class D: where RSP points, once border_read_stack() was called */
	u64 stack;		/* names the stack on which RSP is */
	u8 is_proper;		/* ring 0, 64-bit code, this CPU's own GS base */
	u8 is_inside;		/* of a border-out: RIP is in the text */
	u8 is_fetch;		/* a fetch, or else an interrupt or exception with the cause */
	u8 cause;		/* enum border_cause */
	/*
	 * Class D: how far above RSP the return address is, because M executes a function of the
	 * kernel's (hv/leaf.c), and that has called another one; 0 in all other cases.
	 */
	u64 above;
};

/* What one exit of one CPU works on. */
struct border {
	struct border_cpu *cpu;				/* this CPU's */
	struct border_activation *activations;		/* the pool, of all registrations */
	u32 activation_count;				/* at most 64 */
	u64 *used;					/* border_mark() */
	struct border_registration *registration;	/* of the text, or the activation */
	const struct border_module *module;		/* of this registration */
	u8 class;					/* that of the module */
	u32 who;					/* word_who() of CPU and registration */
	/* Results. */
	u8 crossing;					/* before the first action */
	u8 publish;					/* the event of ACT_PUBLISH */
	struct border_place go;				/* where M or K continues */
};

/*
 * A bit for each activation of the pool: those that are out or dead have it, so that a search looks
 * at few. The CPU that has claimed an activation sets its bit before M runs; the CPU on which M has
 * returned clears it, before others can claim it. What is swept keeps its bit until then; if the
 * pool gets another size, its owner clears the mask.
 */
static inline void border_mark(struct border *border, u32 activation, int is_used)
{
	if (is_used)
		__atomic_or_fetch(border->used, 1ULL << activation, __ATOMIC_ACQ_REL);
	else
		__atomic_and_fetch(border->used, ~(1ULL << activation), __ATOMIC_ACQ_REL);
}

/* A border-in that is still to be taken. */
struct border_claim {
	u8 crossing;
	u8 suspicion;	/* of BORDER_REFUSED */
	u8 entry;	/* of BORDER_IN_CALL */
	u8 activation;
	u32 fixup;	/* of BORDER_IN_RTI */
	u64 word;	/* of the activation, when it was looked at */
};

/* Whether a word is of this registration. */
static __always_inline int border_has(const struct border *border, u64 word)
{
	return !((word ^ border->who) & WORD_REGISTRATION);
}

/* Frees all activations of the registration, none of which is IN (ACT_SWEEP). */
static inline void border_sweep(struct border *border)
{
	for (u32 i = 0; i < border->activation_count; i++) {
		struct border_activation *activation = &border->activations[i];
		u64 word = activation_read(activation);

		if (border_has(border, word))
			activation_change(activation, word,
					  activation_step(word, ACTIVATION_SWEEP, border->who));
	}
}

#endif /* GUARD_BORDER_BORDER_H */
