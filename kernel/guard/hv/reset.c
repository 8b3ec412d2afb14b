// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of the guard: the computer is reset or switched off.
 */
#include <linux/types.h>

#include "guard/hv/hv.h"
#include "guard/hv/views.h"

void hv_clear_secrets(const struct hv_guarded *guarded)
{
	struct hv_saved *saved = &hv_saved[guarded->first];
	u32 i;

	for (i = 0; i < guarded->copy->private_count; i++)
		hv_clear_page(hv_guest_memory(guarded->privates[i]));
	for (i = 0; i < guarded->pool_size && hv_is_secret(guarded); i++)
		saved[i] = (struct hv_saved){};
}

/* No CPU enters M from now on. Every other one has left it, or does not within a long time. */
static void close_all(void)
{
	u64 self = ((u64)__builtin_frame_address(0) - hv_config.cpu_areas) / HV_CPU_SIZE, word;
	struct registration_event event = { .kind = EVENT_REVOKE };
	struct border_actions actions;
	struct border_registration *border, next;
	u32 i, patience = 1 << 24;

	for (i = 0; i < HV_REGISTRATIONS; i++) {
		border = &hv_guarded[i].border;
		actions.count = 0;
		if (!hv_guarded[i].used || !registration_runs(border))
			continue;
		next = registration_step(*border, &event, &actions);
		registration_store(border, *border, next);
	}
	/* An entry takes an activation before it reads the registration's state. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (i = 0; i < HV_ALL_ACTIVATIONS && patience; patience--) {
		word = activation_read(&hv_activations[i]);
		if (word_state(word) != ACTIVATION_IN || word_cpu(word) == self)
			i++;
		else
			asm volatile("pause");
	}
}

/*
 * The computer is about to be reset or switched off, and its memory may keep its contents. What
 * must not be found there then is cleared: the private memory of guarded modules, and what was
 * saved of their registers. Caches are written back, which a reset may drop. Nobody holds the lock
 * of the registrations, or whoever does will not need them again.
 */
void hv_before_reset(void)
{
	u32 i;

	close_all();
	for (i = 0; i < HV_REGISTRATIONS; i++)
		if (hv_guarded[i].used && hv_guarded[i].border.state != REGISTRATION_LOADED)
			hv_clear_secrets(&hv_guarded[i]);
	asm volatile("wbinvd" : : : "memory");
}

/* A triple fault: an exception without a usable IDT. */
static void __noreturn shut_down(void)
{
	static const struct hv_table none;

	asm volatile("lidt %0; ud2" : : "m" (none.limit));
	__builtin_unreachable();
}

/* Resets the computer, as the shutdown that a triple fault causes does (APM 15.14.3). */
void hv_reset(void)
{
	hv_before_reset();
	shut_down();
}

/* An exception of the image, which is a bug. Clearing may cause a second one. */
void hv_fault(void)
{
	static bool is_second;

	if (!__atomic_exchange_n(&is_second, true, __ATOMIC_RELAXED))
		hv_before_reset();
	shut_down();
}
