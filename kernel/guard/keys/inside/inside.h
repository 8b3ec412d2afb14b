/* SPDX-License-Identifier: GPL-2.0-only */
/* What enter.S and work.c share. */
#ifndef GUARD_KEYS_INSIDE_INSIDE_H
#define GUARD_KEYS_INSIDE_INSIDE_H

/*
 * The stacks of the inside are the ones of exchange.h: they have room for the frame of keys_work(),
 * which is smaller than KEYS_USED, and for an interrupt of the kernel's.
 */
#define KEYS_USED	4608

#ifndef __ASSEMBLER__
/*
 * work.c: on a private stack, by one CPU at a time. enter.S calls it, and has its end. @guarded:
 * the stack was given, by a guard.
 */
long keys_work(int guarded);
#endif

#endif /* GUARD_KEYS_INSIDE_INSIDE_H */
