/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The choice of the vendor's hypercall instruction (hypercall.c). */
#ifndef LIBDUNE_HYPERCALL_H
#define LIBDUNE_HYPERCALL_H

#include "compiler.h"
#include "dune.h"

typedef long dune_call_fn(long nr, long a0, long a1, long a2, long a3, long a4, long a5);
typedef long dune_call_tf_fn(struct dune_tf *tf, long nr);

/* Addresses in the code that has the vendor's instruction. */
struct dune_calls {
	const char *lstar, *lstar_call, *lstar_popf, *lstar_end;
	const char *forward_call, *forward_tf_call;
};

extern struct dune_calls dune_calls;
int dune_calls_choose(u32 vendor);

#endif /* LIBDUNE_HYPERCALL_H */
