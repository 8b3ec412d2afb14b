/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Entering Dune mode, by the benchmarks that do not measure it. */
#ifndef BENCH_DUNE_MODE_H
#define BENCH_DUNE_MODE_H

#include "bench.h"

#include <dune.h>

/* Enter Dune mode, or print the reason and exit. */
static inline void enter_dune_mode(void)
{
	must_succeed(dune_enter(NULL), "dune_enter");
}

#endif /* BENCH_DUNE_MODE_H */
