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

/* Sorts @sample. */
uint64_t median(uint64_t *sample, unsigned int n);

/* The ticks of reading the counter twice, which are subtracted from each figure. */
uint64_t overhead(void);

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

/* The name of a tick: an instruction in counting mode, and a cycle on hardware. */
const char *unit(void);

/* A figure that does not exist. */
#define NO_FIGURE NAN

/*
 * Print one measurement as a line of JSON: @linux_ and @dune in @unit, NO_FIGURE where
 * Linux has no counterpart; @exits of the guest for one operation, NO_FIGURE if they
 * were not counted; @allowance: added to the limit that `make bench-check` computes
 * from Linux's figure.
 */
void figure_of(const char *id, const char *unit, double linux_, double dune, double exits,
	       double allowance);

/* The same in ticks, without an allowance. */
void figure(const char *id, double linux_, double dune, double exits);

/*
 * A child process that measures, since a process cannot leave Dune mode or remove a
 * seccomp filter.
 */
struct child {
	int pid;
	int output;	/* a pipe, from which its result is read */
};

/* Start a child that calls measure(result) and ends. */
struct child start_child(void (*measure)(void *result), void *result, size_t bytes);

/* Wait until @child stops, if it is traced, or ends. Returns its status. */
int wait_for(const struct child *child);

/*
 * Copy the @bytes of the result of a child that has ended with @status to @result. If measure()
 * ended the child, by die() for instance, this process exits with 1.
 */
void finish_child(const struct child *child, int status, void *result, size_t bytes);

/* All three, for a child that is not traced. */
void in_process(void (*measure)(void *result), void *result, size_t bytes);

/* The paths of this program, and of dune-run of the same build. */
char *own_path(void);
char *runtime_path(void);

/* Runs a command, and stores what it prints in @text, of @size bytes. */
void output_of(const char *command, char *text, size_t size);

/* Runs a command, and returns the number that it prints. */
uint64_t number_from(const char *command);

/* A command ended by an error, or without the numbers that it should print: exits with 1. */
void command_failed(const char *command, int status) __attribute__((noreturn));

/* Print @what and errno's message, and exit with 1. */
void die(const char *what) __attribute__((noreturn));

#endif /* BENCH_H */
