// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of the guard: the computer is reset or switched off. And what is cleared before a panic.
 */
#include <linux/types.h>

#include "guard/hv/hv.h"
#include "guard/hv/lock.h"
#include "guard/hv/views.h"

static bool has_secrets(const struct hv_guarded *guarded)
{
	return guarded->used && guarded->copy->private_count;
}

/*
 * No CPU enters M from now on: the modules are revoked, or those with private memory alone. The
 * actions are left out. After a reset there is nobody for whom they could be carried out; after a
 * panic, or a reset that the computer ignores, each CPU has to flush as after any revocation.
 */
static void revoke_all(bool secrets)
{
	struct registration_event event = { .kind = EVENT_REVOKE, .who = hv_present };
	struct border_registration *border, next;
	struct border_actions actions;
	u32 i;

	for (i = 0; i < HV_REGISTRATIONS; i++) {
		border = &hv_guarded[i].border;
		actions.count = 0;
		if (!hv_guarded[i].used || !registration_runs(border) ||
		    (secrets && !has_secrets(&hv_guarded[i])))
			continue;
		next = registration_step(*border, &event, &actions);
		registration_store(border, *border, next);
	}
}

/* Every other CPU has left M, or does not within a long time. */
static void wait_for_all(void)
{
	u64 self = ((u64)__builtin_frame_address(0) - hv_config.cpu_areas) / HV_CPU_SIZE, word;
	u32 i, patience = 1 << 24;

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

static void clear_all(void)
{
	u32 i;

	for (i = 0; i < HV_REGISTRATIONS; i++)
		if (hv_guarded[i].used && hv_guarded[i].border.state != REGISTRATION_LOADED)
			hv_clear_secrets(&hv_guarded[i]);
	asm volatile("wbinvd" : : : "memory");
}

/*
 * The computer is about to be reset or switched off, and its memory may keep its contents. What
 * must not be found there then is cleared: the private memory of guarded modules, and what was
 * saved of their registers. Caches are written back, which a reset may drop. Nobody holds the lock
 * of the registrations, or whoever does will not need them again.
 */
void hv_before_reset(void)
{
	revoke_all(false);
	wait_for_all();
	clear_all();
}

/*
 * The same before a panic, and for secrets alone: a panic may need the drivers, and mostly ends in
 * a reset that does not pass through the guard. Linux goes on for a while, and code in ring 0 as
 * long as it likes, so that the lock is needed. Whoever leaves M may wait for it, so that it is not
 * held meanwhile.
 */
void hv_before_panic(void)
{
	hv_lock(&hv_views_lock);
	revoke_all(true);
	hv_unlock(&hv_views_lock);
	wait_for_all();
	hv_lock(&hv_views_lock);
	clear_all();
	hv_unlock(&hv_views_lock);
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
