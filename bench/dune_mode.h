/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Entering Dune mode, and the reason if that fails. */
#ifndef BENCH_DUNE_MODE_H
#define BENCH_DUNE_MODE_H

#include "bench.h"

#include <dune.h>

/* Print the reason and exit, if @err, the result of dune_enter(), is an error. */
static inline void must_have_entered(int err)
{
	if (!err)
		return;
	fprintf(stderr, "dune_enter: %s\n", dune_enter_error());
	exit(1);
}

/* Enter Dune mode, where that is not measured. */
static inline void enter_dune_mode(void)
{
	must_have_entered(dune_enter(NULL));
}

#endif /* BENCH_DUNE_MODE_H */
