/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Addresses in the guest's entry that the other layers need: those that the
 * processor starts at, and the tables that an entry reads.
 */
#ifndef LIBDUNE_ENTRY_H
#define LIBDUNE_ENTRY_H

#include "thread.h"

/* guest/entry.S: the code for each vector, and where a new vCPU starts */
extern const char dune_stubs[], dune_stubs_smap[], dune_tf_resume[];

/* guest/trap.c: the handler of each vector */
extern dune_trap_fn dune_trap_table[VEC_GATES];

#endif /* LIBDUNE_ENTRY_H */
