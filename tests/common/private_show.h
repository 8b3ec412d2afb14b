/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A way to private memory (DUNE_ADD_PRIVATE) in a guest's page table. */
#ifndef DUNE_TESTS_PRIVATE_SHOW_H
#define DUNE_TESTS_PRIVATE_SHOW_H

#include "guest.h"

/* The address at which private_show() puts the pages in the guest: no process has this address. */
#define PRIVATE_AT	0xffff800000000000UL

/* Let the guest's page table have the 2 MB at @gpa at PRIVATE_AT, for every access. */
void private_show(struct guest *g, u64 gpa);

/* Where the guest then has the byte at @gpa, which is in these 2 MB. */
static inline void *private_at(u64 gpa)
{
	return (void *)(PRIVATE_AT + gpa % (2UL << 20));
}

#endif
