// SPDX-License-Identifier: GPL-2.0-only
/* The automaton of an activation: see activation.h. */
#include "guard/hv/border/activation.h"

/*
 * Entries that are not named are ACTIVATION_NEVER. A dead activation can be claimed like a free
 * one.
 */
static const u8 next_state[ACTIVATION_STATES][ACTIVATION_EVENTS] = {
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

static u64 word_make(u8 state, u8 cpu, u8 registration, u32 count)
{
	return state | (u64)cpu << 8 | (u64)registration << 16 | (u64)count << 32;
}

u64 activation_step(u64 word, u8 event, u8 cpu, u8 registration)
{
	u8 state = word_state(word);
	u8 next = next_state[state][event];

	if (next == ACTIVATION_NEVER)
		return 0;
	/* An activation in M belongs to its CPU, and one that is out to its registration. */
	if (state == ACTIVATION_IN && word_cpu(word) != cpu)
		return 0;
	if (event != ACTIVATION_CLAIM && word_registration(word) != registration)
		return 0;
	if (next != ACTIVATION_IN)
		cpu = 0;
	if (next == ACTIVATION_FREE)
		registration = 0;
	return word_make(next, cpu, registration, word_count(word) + 1);
}
