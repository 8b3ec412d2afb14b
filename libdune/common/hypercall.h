/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The choice of the vendor's hypercall instruction (hypercall.c). */
#ifndef LIBDUNE_HYPERCALL_H
#define LIBDUNE_HYPERCALL_H

#include "compiler.h"
#include "dune.h"

struct dune_child;

typedef long dune_call_fn(long nr, long a0, long a1, long a2, long a3, long a4, long a5);
typedef long dune_call_tf_fn(struct dune_tf *tf, long nr);

/* Addresses in the code that has the vendor's instruction. */
struct dune_calls {
	const char *lstar, *lstar_call, *lstar_popf, *lstar_end;
	const char *forward_call, *forward_tf_call;
	/* the functions for a process without a host half */
	dune_call_fn *alone, *alone_forward;
	dune_call_tf_fn *alone_forward_tf;
	long (*alone_clone)(long make, struct dune_child *child);	/* alone/child.S */
};

extern const struct dune_calls *dune_calls;
int dune_calls_choose(u32 vendor);
/* After the choice of the vendor: the process has no host half. */
void dune_calls_choose_alone(void);

#endif /* LIBDUNE_HYPERCALL_H */
