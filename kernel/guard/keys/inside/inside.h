/* SPDX-License-Identifier: GPL-2.0-only */
/* What enter.S and work.c share. */
#ifndef GUARD_KEYS_INSIDE_INSIDE_H
#define GUARD_KEYS_INSIDE_INSIDE_H

/*
 * The stacks of the inside: a guard gives one to each activation; without a guard, the first one is
 * used. They have room for the frame of keys_work() and for an interrupt of the kernel's.
 */
#define KEYS_STACKS	4
#define KEYS_STACK	16384

#ifndef __ASSEMBLER__
/* work.c: on a private stack, by one CPU at a time. enter.S calls it, and has its end. */
long keys_work(void);
#endif

#endif /* GUARD_KEYS_INSIDE_INSIDE_H */
