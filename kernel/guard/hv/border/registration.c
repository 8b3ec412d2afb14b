// SPDX-License-Identifier: GPL-2.0-only
/* The automaton of a registration: see registration.h. */
#include "guard/hv/border/registration.h"

/* All views have changed: nobody has flushed yet. */
static void await(struct border_registration *next, u64 who, struct border_actions *actions)
{
	next->generation++;
	next->awaited = who;
	border_do(actions, ACT_ASK_FLUSH, next->generation);
}

static void revoke(struct border_registration *next, u64 who, struct border_actions *actions)
{
	next->state = REGISTRATION_DYING;
	border_do(actions, ACT_CLOSE, 0);
	await(next, who, actions);
}

static int is_guarded(u8 state)
{
	return state != REGISTRATION_LOADED && state != REGISTRATION_DYING;
}

struct border_registration registration_step(struct border_registration old,
					     const struct registration_event *event,
					     struct border_actions *actions)
{
	struct border_registration next = old;

	switch (event->kind) {
	case EVENT_BIND:
		if (old.state != REGISTRATION_LOADED)
			break;
		next.privileges = event->privileges;
		next.choice = event->choice;
		return next;

	case EVENT_FREEZE:
		if (old.state != REGISTRATION_LOADED || old.stopped)
			break;
		next.state = REGISTRATION_FROZEN;
		border_do(actions, ACT_LOCK_CONFIG, 0);
		border_do(actions, ACT_FREEZE, 0);
		await(&next, event->who, actions);
		return next;

	case EVENT_ACK:
		if (event->generation != old.generation)
			break;
		next.awaited &= ~event->who;
		if (old.state == REGISTRATION_FROZEN && !next.awaited)
			next.state = REGISTRATION_FLUSHED;
		return next;

	case EVENT_HASH:
		if (old.state != REGISTRATION_FLUSHED)
			break;
		border_do(actions, ACT_HASH, 0);
		return next;

	case EVENT_MATCH:
		if (old.state != REGISTRATION_FLUSHED)
			break;
		next.state = REGISTRATION_HASHED;
		return next;

	case EVENT_MISMATCH:
		if (old.state != REGISTRATION_FLUSHED)
			break;
		/* As border_suspect(), which is for code that does not hold the lock. */
		border_do(actions, ACT_REPORT, SUSPECT_CONTENT);
		if (registration_chose(&old, CHOICE_LOG))
			border_do(actions, ACT_LOG, SUSPECT_CONTENT);
		next.stopped |= registration_chose(&old, CHOICE_STOP);
		revoke(&next, event->who, actions);
		if (registration_chose(&old, CHOICE_PANIC))
			border_panic(actions);
		return next;

	case EVENT_ARM:
		if (old.state != REGISTRATION_HASHED)
			break;
		next.state = REGISTRATION_ARMED;
		next.begun = !old.has_init;
		border_do(actions, ACT_OPEN, old.privileges);
		return next;

	case EVENT_SEAL:
		if (old.state != REGISTRATION_ARMED || !old.begun)
			break;
		next.state = REGISTRATION_SEALED;
		return next;

	case EVENT_REVOKE:
		if (!is_guarded(old.state))
			break;
		revoke(&next, event->who, actions);
		return next;

	case EVENT_STOP:
		next.stopped = 1;
		if (is_guarded(old.state))
			revoke(&next, event->who, actions);
		return next;

	case EVENT_THAW:
		if (old.state != REGISTRATION_DYING || old.awaited)
			break;
		next.state = REGISTRATION_LOADED;
		next.begun = 0;
		border_do(actions, ACT_SWEEP, 0);
		border_do(actions, ACT_CLEAR_SECRETS, 0);
		border_do(actions, ACT_THAW, 0);
		border_do(actions, ACT_UNLOCK_CONFIG, 0);
		return next;
	}
	border_do(actions, ACT_REFUSE, 0);
	return old;
}

void registration_store(struct border_registration *registration, struct border_registration old,
			struct border_registration next)
{
	registration->choice = next.choice;
	registration->privileges = next.privileges;
	__atomic_store_n(&registration->stopped, next.stopped, __ATOMIC_RELAXED);
	registration->awaited = next.awaited;
	if (next.begun != old.begun)
		__atomic_store_n(&registration->begun, next.begun, __ATOMIC_RELAXED);
	__atomic_store_n(&registration->generation, next.generation, __ATOMIC_RELEASE);
	__atomic_store_n(&registration->state, next.state, __ATOMIC_RELEASE);
}
