/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The choice of the vendor's hypercall instruction (hypercall.c). */
#ifndef LIBDUNE_HYPERCALL_H
#define LIBDUNE_HYPERCALL_H

#include "compiler.h"

/* Addresses in the code that has the vendor's instruction. */
struct dune_calls {
	const char *lstar, *lstar_call, *lstar_popf, *lstar_end;
	const char *forward_call, *forward_tf_call;
};

extern const struct dune_calls *dune_calls;
int dune_calls_choose(u32 vendor);

#endif /* LIBDUNE_HYPERCALL_H */
