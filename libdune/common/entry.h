/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The symbols of guest/ that host/ and alone/ need to set up a vCPU: the instruction at which the
 * guest starts, the code for each vector, and the table of handlers.
 */
#ifndef LIBDUNE_ENTRY_H
#define LIBDUNE_ENTRY_H

#include "dune.h"
#include "layout.h"

/* guest/entry.S: the code for each vector, and where a new vCPU starts */
extern const char dune_stubs[], dune_stubs_smap[], dune_tf_resume[];
extern const char dune_lstar_svm[], dune_lstar_vmx[];
/* guest/entry.S: dune_stubs and dune_stubs_smap for a process without a host half */
extern const char dune_stubs_alone[], dune_stubs_alone_smap[];

/* guest/trap.c: the handler of each vector */
extern dune_trap_fn dune_trap_table[VEC_HANDLERS];

#endif /* LIBDUNE_ENTRY_H */
