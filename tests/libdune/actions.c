// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The library's record of the actions of signals (libdune/common/sigaction.h), read and
 * reset at each instruction of a change, as a signal's handler in the host half does,
 * and undone there, as after the death of the thread that changed it. Fails when a
 * reader gets a part of the old action and a part of the new one, when a new action is
 * lost, when an action that was undone is neither of the two, or when a signal counts
 * as handled that has no handler. It uses the library's own headers, since the record
 * is not public.
 */
#include <dune.h>
#include "../../libdune/common/layout.h"
#include "../../libdune/common/sigaction.h"
#include "rings.h"
#include "step.h"
#include "tap.h"

#define SIG	10

static struct dune_sighand sighand, left;
static const struct ksigaction old_action = { 0x1111, SA_RESETHAND, 0x2222, 0x3333 };
/* The same handler, so that only the flags and the mask tell the two apart. */
static const struct ksigaction new_action = { 0x1111, SA_RESETHAND | SA_NODEFER, 0x5555, 0x6666 };
static struct ksigaction seen;
static int steps, at_step, reset;

static bool equal(const struct ksigaction *a, const struct ksigaction *b)
{
	return a->handler == b->handler && a->flags == b->flags &&
	       a->restorer == b->restorer && a->mask == b->mask;
}

GPR_ONLY static void on_step(struct dune_tf *tf)
{
	struct ksigaction real;

	(void)tf;
	if (++steps != at_step)
		return;
	left = sighand;		/* if the thread were killed now, with the lock */
	left.lock.holder = 1;
	seen = dune_action(&sighand, SIG);
	reset = dune_reset_action(&sighand, SIG, &seen, &real);
}

static void change_stepped(const struct ksigaction *to)
{
	steps = 0;
	step_on();
	dune_set_action(&sighand, SIG, to);
	step_off();
}

/* Undoes the change from @from to @to at each instruction. Returns how often that fails. */
static int undo_everywhere(const struct ksigaction *from, const struct ksigaction *to)
{
	struct ksigaction now;
	int wrong = 0;

	for (at_step = 1; ; at_step++) {
		dune_set_action(&sighand, SIG, from);
		change_stepped(to);
		if (steps < at_step)
			return wrong;
		dune_undo_set_action(&left);
		now = dune_action(&left, SIG);
		wrong += (left.sequence & 1) || (!equal(&now, from) && !equal(&now, to)) ||
			 !(left.handled & sigbit(SIG)) != (now.handler == SIG_DFL);
	}
}

int main(void)
{
	static const struct ksigaction dfl = { .handler = SIG_DFL };
	int mixed = 0, back = 0, lost = 0, kept = 0, wrong = 0, was_new = 0;
	struct ksigaction now;

	must_enter(NULL);
	dune_trap_set(X86_TRAP_DB, on_step, 0);
	for (at_step = 1; ; at_step++) {
		dune_set_action(&sighand, SIG, &old_action);
		change_stepped(&new_action);
		if (steps < at_step)
			break;
		now = dune_action(&sighand, SIG);
		if (equal(&seen, &new_action)) {
			was_new = 1;
			/* Its handler ran: the action is reset. */
			kept += !reset || now.handler != SIG_DFL;
		} else if (equal(&seen, &old_action)) {
			back += was_new;
			/* The old action's handler ran; the new action holds. */
			lost += !equal(&now, &new_action);
		} else {
			mixed++;
		}
		wrong += !(sighand.handled & sigbit(SIG)) != (now.handler == SIG_DFL);
	}
	ok(at_step > 20, "the change takes %d steps", at_step);
	is(was_new, 1, "the new action was seen in the end");
	is(mixed, 0, "no reader gets a part of each action");
	is(back, 0, "no reader gets the old action after the new one");
	is(lost, 0, "the new action is not reset in place of the old one");
	is(kept, 0, "the new action is reset when it was taken");
	is(wrong, 0, "a signal counts as handled exactly if it has a handler");
	is(undo_everywhere(&dfl, &new_action), 0, "a new handler is undone at every instruction");
	is(undo_everywhere(&old_action, &dfl), 0, "its removal is undone at every instruction");
	return done();
}
