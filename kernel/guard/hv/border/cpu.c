// SPDX-License-Identifier: GPL-2.0-only
/* The automaton of a CPU: see cpu.h. */
#include "guard/hv/border/cpu.h"
#include "guard/hv/border/module.h"

/*
 * The registers that M finds. A module of class D takes those that a function may change as the
 * kernel leaves them: after a call they have the result, or are dead by the calling convention.
 */
static void restore(const struct cpu_event *event, struct border_actions *actions)
{
	switch (event->crossing) {
	case BORDER_IN_CALL:
		if (event->class != CLASS_S)
			break;
		if (event->was_dead)
			border_do(actions, ACT_CLEAR_STACK, event->activation);
		border_do(actions, ACT_FRESH_STACK, event->activation);
		border_do(actions, ACT_KEEP, event->activation);
		break;
	case BORDER_IN_RET:
		border_do(actions, ACT_RESTORE, REGISTERS_CALLEE_SAVED);
		break;
	case BORDER_IN_RTI:
		border_do(actions, ACT_RESTORE, REGISTERS_ALL);
		if (event->fixup != NO_FIXUP)
			border_do(actions, ACT_FIXUP, event->fixup);
		break;
	}
}

/*
 * The registers that K finds. Of class S it finds the result, and its own callee-saved registers;
 * after an interrupt, nothing. An activation that died has an error as its result.
 */
static void save(const struct cpu_event *event, u32 activation, struct border_actions *actions)
{
	u32 clear = REGISTERS_ALL;

	if (event->crossing == BORDER_OUT_CALL || event->crossing == BORDER_OUT_INT)
		border_do(actions, ACT_SAVE, activation);
	if (event->class != CLASS_S)
		return;
	if (event->crossing == BORDER_OUT_RET)
		clear = REGISTERS_BUT_RESULT;
	border_do(actions, ACT_CLEAR, clear);
	if (event->crossing == BORDER_OUT_INT)
		return;
	border_do(actions, ACT_GIVE_BACK, activation);
	if (event->crossing == BORDER_OUT_RET)
		return;
	border_do(actions, ACT_FAIL, 0);
	border_do(actions, ACT_CLEAR_STACK, activation);
}

static u8 flush(u8 owed, struct border_actions *actions)
{
	if (owed & OWES_K)
		border_do(actions, ACT_FLUSH_K, 0);
	if (owed & OWES_M)
		border_do(actions, ACT_FLUSH_M, 0);
	return owed;
}

struct border_cpu cpu_step(struct border_cpu old, const struct cpu_event *event,
			   struct border_actions *actions)
{
	struct border_cpu next = old;

	switch (event->kind) {
	case CPU_ENTER:
		next.owes &= ~flush(OWES_M, actions);
		restore(event, actions);
		border_do(actions, ACT_RAISE, event->privileges);
		border_do(actions, ACT_ENTER_M, event->activation);
		next.raised = event->privileges;
		next.activation = event->activation;
		next.view = VIEW_M;
		break;

	case CPU_LEAVE:
		border_do(actions, ACT_LOWER, old.raised);
		save(event, old.activation, actions);
		next.owes &= ~flush(old.owes & OWES_K, actions);
		next.owes |= OWES_M;
		border_do(actions, ACT_ENTER_K, 0);
		next.raised = 0;
		next.activation = 0;
		next.view = VIEW_K;
		break;

	case CPU_VIEWS_CHANGED:
		next.owes = OWES_K | OWES_M;
		break;

	case CPU_FLUSH:
		/* The kernel continues, so that a flush of M's tag is owed again. */
		flush(OWES_K | OWES_M, actions);
		next.owes = OWES_M;
		break;
	}
	return next;
}
