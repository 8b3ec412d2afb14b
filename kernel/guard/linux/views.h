/* SPDX-License-Identifier: GPL-2.0-only */
/* Registrations of guarded modules, as Linux makes them: views.c. */
#ifndef GUARD_LINUX_VIEWS_H
#define GUARD_LINUX_VIEWS_H

#include "guard/hv/views.h"

/*
 * For process context, while the guard is launched. Both return 0 or a negative errno. The module's
 * text is at its final place, no CPU and no thread is in it, and @registration is in physically
 * contiguous memory of Linux's direct map, from the beginning of a page. -EPERM: the guard is
 * sealed; -EBUSY: the number is used, or a CPU has not acknowledged.
 */
int guard_views_arm(unsigned int number, const struct hv_registration *registration);
int guard_views_disarm(unsigned int number);

u64 guard_views_crossings(enum hv_crossing crossing);

#endif /* GUARD_LINUX_VIEWS_H */
