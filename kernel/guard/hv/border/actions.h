/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a step of an automaton demands of the hypervisor. Actions are carried out in the order of
 * the step and before the guest executes another instruction on this CPU. Privileges are bits of a
 * mask, one for each name; raising and lowering are complete when the action is. A step that is
 * refused leaves its automaton as it was.
 *
 * A crossing's actions are carried out at once, by border_act(), which the includer of crossings.h
 * has: with an action that is a constant, the compiler leaves nothing but the code of that action.
 * The step of a registration returns a list.
 */
#ifndef GUARD_BORDER_ACTIONS_H
#define GUARD_BORDER_ACTIONS_H

#include "guard/hv/border/types.h"

enum border_action_kind {
	/* Of a crossing, on this CPU. */
	ACT_FLUSH_K,		/* flush the TLB tag of K */
	ACT_FLUSH_M,		/* flush the TLB tag of M */
	ACT_LOWER,		/* lower the privileges in the mask @argument */
	ACT_RAISE,		/* raise them */
	ACT_SAVE,		/* save the general registers of the activation @argument */
	ACT_CLEAR,		/* clear the set @argument of general registers */
	ACT_RESTORE,		/* load the set @argument from what was saved */
	ACT_FIXUP,		/* set the register that the module's fixup @argument names */
	ACT_FRESH_STACK,	/* class S: put the gate on the private stack */
	ACT_CLEAR_STACK,	/* class S: clear the private stack of the activation @argument */
	ACT_KEEP,		/* class S: keep the kernel's callee-saved registers */
	ACT_GIVE_BACK,		/* class S: load them again */
	ACT_FAIL,		/* class S: the result is an error */
	ACT_ENTER_M,		/* continue in M, at the "go" of the crossing */
	ACT_ENTER_K,		/* continue in K, at the "go" of the crossing */
	ACT_PUBLISH,		/* border_publish(): then others may have the activation */
	ACT_DELIVER,		/* K takes the interrupt or exception that ended M */
	ACT_FAULT,		/* the fetch is refused: #GP in K, or a copy without privileges */

	/* Of both. */
	ACT_REPORT,		/* count the suspicion @argument */
	ACT_LOG,		/* log it */
	ACT_PANIC,		/* clear the secrets of all modules; the kernel panics */
	ACT_CLEAR_SECRETS,	/* clear private frames and saved registers */
	ACT_CHANGE,		/* of a crossing: step the registration with the event @argument */
	ACT_REFUSE,		/* the administrator's or the loader's call fails */

	/* Of a registration, for all CPUs and for the IOMMU. */
	ACT_LOCK_CONFIG,	/* lock configuration space, then read the BARs */
	ACT_FREEZE,		/* nobody writes the text, K has no private frame and no BAR */
	ACT_ASK_FLUSH,		/* ask all to flush, and to acknowledge this generation */
	ACT_HASH,		/* hash the content, then step with the verdict */
	ACT_OPEN,		/* M executes the text and has the privileges' pages */
	ACT_CLOSE,		/* M has nothing of the module any more */
	ACT_SWEEP,		/* free all activations of this registration */
	ACT_THAW,		/* K and devices have all frames again */
	ACT_UNLOCK_CONFIG,
};

struct border_action {
	u32 kind;
	u32 argument;
};

/* The longest list has 6 actions; the exploration verifies that there is room. */
#define BORDER_ACTIONS	8

struct border_actions {
	u32 count;
	struct border_action list[BORDER_ACTIONS];
};

static inline void border_do(struct border_actions *actions, u32 kind, u32 argument)
{
	if (actions->count < BORDER_ACTIONS) {
		actions->list[actions->count].kind = kind;
		actions->list[actions->count].argument = argument;
	}
	actions->count++;
}

/* A panic leaves memory to others: to the kernel that takes the dump, and to the dump's readers. */
static inline void border_panic(struct border_actions *actions)
{
	border_do(actions, ACT_CLEAR_SECRETS, 0);
	border_do(actions, ACT_PANIC, 0);
}

#endif /* GUARD_BORDER_ACTIONS_H */
