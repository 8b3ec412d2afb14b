/* SPDX-License-Identifier: GPL-2.0-only */
/* The automaton of a CPU: its steps at a crossing, and when it flushes. */
#ifndef GUARD_BORDER_CPU_STEP_H
#define GUARD_BORDER_CPU_STEP_H

#include "guard/hv/border/border.h"

/* Of the includer: carries out an action at once. */
static void border_act(struct border *border, u32 kind, u32 argument);

/*
 * The registers that M finds. A module of class D takes those that a function may change as the
 * kernel leaves them: after a call they have the result, or are dead by the calling convention.
 */
static __always_inline void cpu_restore(struct border *border, const struct border_claim *claim)
{
	switch (border->crossing) {
	case BORDER_IN_CALL:
		if (border->class != CLASS_S)
			break;
		if (word_state(claim->word) == ACTIVATION_DEAD)
			border_act(border, ACT_CLEAR_STACK, claim->activation);
		border_act(border, ACT_FRESH_STACK, claim->activation);
		border_act(border, ACT_KEEP, claim->activation);
		break;
	case BORDER_IN_RET:
		border_act(border, ACT_RESTORE, REGISTERS_CALLEE_SAVED);
		break;
	case BORDER_IN_RTI:
		border_act(border, ACT_RESTORE, REGISTERS_ALL);
		if (claim->fixup != NO_FIXUP)
			border_act(border, ACT_FIXUP, claim->fixup);
		break;
	}
}

/*
 * The registers that K finds. Of class S it finds the result, and its own callee-saved registers;
 * after an interrupt, nothing. An activation that died has an error as its result.
 */
static __always_inline void cpu_save(struct border *border, u32 activation)
{
	u8 crossing = border->crossing;

	if (crossing == BORDER_OUT_CALL || crossing == BORDER_OUT_INT)
		border_act(border, ACT_SAVE, activation);
	if (border->class != CLASS_S)
		return;
	if (crossing == BORDER_OUT_RET)
		border_act(border, ACT_CLEAR, REGISTERS_BUT_RESULT);
	else
		border_act(border, ACT_CLEAR, REGISTERS_ALL);
	if (crossing == BORDER_OUT_INT)
		return;
	border_act(border, ACT_GIVE_BACK, activation);
	if (crossing == BORDER_OUT_RET)
		return;
	border_act(border, ACT_FAIL, 0);
	border_act(border, ACT_CLEAR_STACK, activation);
}

static __always_inline u8 cpu_flush_tags(struct border *border, u8 owed)
{
	if (owed & OWES_K)
		border_act(border, ACT_FLUSH_K, 0);
	if (owed & OWES_M)
		border_act(border, ACT_FLUSH_M, 0);
	return owed;
}

/* A border-in. */
static __always_inline void cpu_enter(struct border *border, const struct border_claim *claim)
{
	struct border_cpu *cpu = border->cpu;
	u32 privileges = border->registration->privileges;
	u8 owes = cpu->owes;

	owes &= ~cpu_flush_tags(border, OWES_M);
	cpu_restore(border, claim);
	border_act(border, ACT_RAISE, privileges);
	*cpu = (struct border_cpu){
		.view = VIEW_M, .owes = owes, .activation = claim->activation, .raised = privileges,
	};
	border_act(border, ACT_ENTER_M, claim->activation);
}

/* A border-out. */
static __always_inline void cpu_leave(struct border *border, u8 activation)
{
	struct border_cpu *cpu = border->cpu;
	u8 owes = cpu->owes;

	border_act(border, ACT_LOWER, cpu->raised);
	cpu_save(border, activation);
	if (border_rarely(owes & OWES_K))
		owes &= ~cpu_flush_tags(border, OWES_K);
	*cpu = (struct border_cpu){ .view = VIEW_K, .owes = owes | OWES_M };
	border_act(border, ACT_ENTER_K, 0);
}

/* In K: flush all, in order to acknowledge. */
static __always_inline void cpu_flush(struct border *border)
{
	cpu_flush_tags(border, OWES_K | OWES_M);
	/* The kernel continues, so that a flush of M's tag is owed again. */
	border->cpu->owes = OWES_M;
}

/*
 * The first half of an acknowledgment. Sets the generation for EVENT_ACK, which is sent when the
 * actions have been carried out. Returns 0 if this CPU is in M: it first has to leave it.
 */
static __always_inline int border_flush(struct border *border, u32 *generation)
{
	if (border->cpu->view != VIEW_K)
		return 0;
	*generation = __atomic_load_n(&border->registration->generation, __ATOMIC_ACQUIRE);
	cpu_flush(border);
	return 1;
}

#endif /* GUARD_BORDER_CPU_STEP_H */
