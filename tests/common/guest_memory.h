/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The memory that a guest's processor looks at, for guest.c. Tests use guest.h. */
#ifndef DUNE_TESTS_GUEST_MEMORY_H
#define DUNE_TESTS_GUEST_MEMORY_H

#include "guest.h"

/*
 * Descriptors of segments from 0 to the end of memory: present, accessed, code also to read and
 * data also to write (APM vol. 2, 4.7 and 4.8). The number at the end is the DPL.
 */
#define DESC_CODE64_0	0x00af9b000000ffff	/* L */
#define DESC_CODE64_3	0x00affb000000ffff	/* L */
#define DESC_CODE32_3	0x00cffb000000ffff	/* D */
#define DESC_DATA_0	0x00cf93000000ffff
#define DESC_DATA_3	0x00cff3000000ffff

/* Fills the page tables, descriptor tables, gates and the TSS in @g->mem. */
void guest_make_tables(struct guest *g);

/*
 * Maps the granules of the process for a new vCPU, which may be of another address space than
 * those before it. 0 or -errno.
 */
int guest_map_granules(struct guest *g);

#endif
