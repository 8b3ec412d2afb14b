/* SPDX-License-Identifier: GPL-2.0-only */
/* Registrations of guarded modules, as Linux makes them: views.c. */
#ifndef GUARD_LINUX_VIEWS_H
#define GUARD_LINUX_VIEWS_H

#include "guard/hv/views.h"

/*
 * All functions are for process context, while the guard is launched, and return 0 or a negative
 * errno; -EPERM: the guard is sealed. The number of a registration is below HV_REGISTRATIONS.
 *
 * To register a module with all that M has to know: the module's text is at its final place, no CPU
 * and no thread is in it, and @registration is in physically contiguous memory of Linux's direct
 * map, from the beginning of a page. -EBUSY: the number is used, or a CPU has not acknowledged.
 */
int guard_views_arm(unsigned int number, const struct hv_registration *registration);
int guard_views_disarm(unsigned int number);

/*
 * Hands a description over, in memory of vmalloc()'s. -ENOMEM: the guard has not enough; -ENOEXEC:
 * the leaf @which has other bytes. @leaves is in a page of its own.
 */
int guard_views_describe(unsigned int number, const void *description, unsigned int size,
			 const struct hv_privilege *privileges, unsigned int count, bool has_tally,
			 enum border_choice choice, const struct hv_leaf_list *leaves, u64 *which);
int guard_views_undescribe(unsigned int number);
struct module;

/* Where Linux has loaded a module. Returns 0, or -E2BIG if @load cannot have all of it. */
int guard_views_find(const struct module *mod, bool has_init, struct hv_load *load);
/*
 * The module that was described is where @load, in a page of its own, has it; it is then armed, and
 * guard_views_disarm() is for it, too. -ENOEXEC: it is another one, and @finding (HV_CALL_ARM in
 * hv.h) has the place.
 */
int guard_views_load(unsigned int number, const struct hv_load *load, u64 *finding);
/* Its init has returned, and Linux is about to free it. -EINVAL: nothing of init is frozen. */
int guard_views_release(unsigned int number);
/*
 * Returns enum registration_state, perhaps with HV_STATE_STOPPED, or a negative number if the
 * module is not loaded.
 */
s64 guard_views_state(unsigned int number);

/*
 * One row of the tally (struct hv_tally_row) of a module that was described. Returns 0, -ENODATA if
 * it has no tally, or -ENOENT if that has no such row.
 */
#define HV_TALLY_WORDS	(sizeof(struct hv_tally_row) / sizeof(u64))
s64 guard_views_tally(unsigned int number, unsigned int row, u64 words[HV_TALLY_WORDS]);

u64 guard_views_crossings(enum hv_crossing crossing);

#endif /* GUARD_LINUX_VIEWS_H */
