/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Counting the exits of this process, which is in Dune mode. */
#ifndef BENCH_EXITS_H
#define BENCH_EXITS_H

#include "bench.h"

#include <dune.h>
#include <linux/dune.h>

/* Exits since the vCPU was made, but for those for the host's interrupts. */
static inline uint64_t exits(void)
{
	struct dune_stats stats;

	dune_stats(&stats);
	return stats.counters[DUNE_COUNT_EXITS] - stats.counters[DUNE_COUNT_INTERRUPT];
}

/*
 * The exits of one execution of a statement that may use the index i, from ROUNDS
 * executions. The counters are read once beforehand, so that pages which only this code
 * touches have their faults then.
 */
#define EXITS(statement) ({						\
	uint64_t before = exits();					\
	int i;								\
									\
	before = exits();						\
	for (i = 0; i < ROUNDS; i++) {					\
		statement;						\
	}								\
	(double)(exits() - before) / ROUNDS;				\
})

#endif /* BENCH_EXITS_H */
