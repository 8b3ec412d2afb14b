/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Measuring, for all benchmarks. Each program measures Linux and Dune in one run,
 * takes medians, and prints a line of JSON for each figure, which tools/suite
 * compares with its target. Costs are differences of the time stamp counter: cycles
 * on hardware, and exact numbers of instructions in counting mode.
 */
#ifndef BENCH_H
#define BENCH_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 51

static inline uint64_t now(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence; rdtsc" : "=a" (low), "=d" (high) : : "memory");
	return low | (uint64_t)high << 32;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Sorts @sample. */
static inline uint64_t median(uint64_t *sample, unsigned int n)
{
	qsort(sample, n, sizeof(*sample), by_value);
	return sample[n / 2];
}

/* The cost of reading the counter twice, which is subtracted from each figure. */
static inline uint64_t overhead(void)
{
	uint64_t sample[ROUNDS], t;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		t = now();
		sample[i] = now() - t;
	}
	return median(sample, ROUNDS);
}

/* Median of @ROUNDS measurements of a statement that may use the index i. */
#define MEASURE(statement) ({						\
	uint64_t sample[ROUNDS], nothing = overhead(), t;		\
	int i;								\
	for (i = 0; i < ROUNDS; i++) {					\
		t = now();						\
		statement;						\
		sample[i] = now() - t - nothing;			\
	}								\
	median(sample, ROUNDS);						\
})

/* A tick is an instruction in counting mode, and a cycle on hardware. */
static inline const char *unit(void)
{
	return getenv("DUNE_BENCH_UNIT") ? getenv("DUNE_BENCH_UNIT") : "instructions";
}

/* A figure that does not exist. */
#define NONE NAN

/*
 * Print one measurement as a line of JSON: @linux_ and @dune in @unit, NONE where
 * Linux has no counterpart; @exits of the guest for one operation, NONE if they
 * were not counted; @allowance: by how many @unit Dune's figure may exceed its
 * target in `make bench-check`, which is a multiple of Linux's.
 */
static inline void figure_of(const char *id, const char *unit, double linux_,
			     double dune, double exits, double allowance)
{
	printf("{\"id\": \"%s\", \"unit\": \"%s\", \"linux\": ", id, unit);
	if (isnan(linux_))
		printf("null");
	else
		printf("%.1f", linux_);
	printf(", \"dune\": %.1f, \"exits\": ", dune);
	if (isnan(exits))
		printf("null");
	else
		printf("%.2f", exits);
	printf(", \"allowance\": %.1f}\n", allowance);
	fflush(stdout);
}

/* The same in the unit of the machine, without an allowance. */
static inline void figure(const char *id, double linux_, double dune,
			  double exits)
{
	figure_of(id, unit(), linux_, dune, exits, 0);
}

static inline void die(const char *what)
{
	perror(what);
	exit(1);
}

#endif /* BENCH_H */
