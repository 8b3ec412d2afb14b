// SPDX-License-Identifier: GPL-2.0-only
/*
 * The end of the guard: the computer is reset or switched off.
 */
#include <linux/types.h>

#include "guard/hv/hv.h"

/*
 * The computer is about to be reset or switched off, and its memory may keep its contents. What
 * must not be found there then has to be cleared, and caches written back, which a reset may drop.
 * No memory of the guard's has such contents: what it has can be known from outside.
 */
void hv_before_reset(void)
{
	asm volatile("wbinvd" : : : "memory");
}

/* Resets the computer, as the shutdown that a triple fault causes does (APM 15.14.3). */
void hv_reset(void)
{
	hv_before_reset();
	hv_fatal();
}
