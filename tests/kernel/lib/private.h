/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * For the tests of private memory (DUNE_ADD_PRIVATE), private_*.c: adding pages, and secrets that a
 * guest writes there. The way to them in a guest is private_show().
 */
#ifndef DUNE_TESTS_PRIVATE_H
#define DUNE_TESTS_PRIVATE_H

#include "guest.h"
#include "private_show.h"

/*
 * Call first: a watchdog of @seconds over the program, the kernel log, and @g. Returns whether the
 * processor has private memory; without it, one verdict is skipped.
 */
bool private_begin(struct guest *g, unsigned int seconds);
/* The verdict on the kernel log, and the plan; the exit status of main(). */
int private_end(void);

/* Add @pages to the address space of @g. 0, with the guest-physical address in @gpa, or -errno. */
int private_add(struct guest *g, u64 pages, u64 *gpa);
/* Whether the last exit was for an access to @gpa, where no memory is. */
bool private_missing(const struct guest *g, u64 gpa);

/* ---- secrets, which functions of a guest write and count ---- */

#define SECRETS	64

/* Determines the secrets. */
extern volatile u64 secret_seed;

/* A number that is nowhere in memory until this function makes it. */
u64 secret(u64 n);
/* In the guest: write SECRETS numbers to @page. */
u64 keep_secrets(void *page);
/* In the guest: how many of these numbers are still in @page. */
u64 count_secrets(void *page);

#endif
