// SPDX-License-Identifier: MIT OR Apache-2.0
/* Medians, and the lines that all benchmarks print. */
#include "bench.h"

#include <sys/wait.h>
#include <unistd.h>

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

uint64_t median(uint64_t *sample, unsigned int n)
{
	qsort(sample, n, sizeof(*sample), by_value);
	return sample[n / 2];
}

uint64_t overhead(void)
{
	uint64_t sample[ROUNDS], t;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		t = now();
		sample[i] = now() - t;
	}
	return median(sample, ROUNDS);
}

const char *unit(void)
{
	return getenv("DUNE_BENCH_UNIT") ? getenv("DUNE_BENCH_UNIT") : "instructions";
}

void figure_of(const char *id, const char *unit, double linux_, double dune, double exits,
	       double allowance)
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

void figure(const char *id, double linux_, double dune, double exits)
{
	figure_of(id, unit(), linux_, dune, exits, 0);
}

void in_process(void (*measure)(void *result), void *result, size_t bytes)
{
	int channel[2], status;
	pid_t child;

	if (pipe(channel))
		die("pipe");
	child = fork();
	if (child < 0)
		die("fork");
	if (!child) {
		measure(result);
		_exit(write(channel[1], result, bytes) != (ssize_t)bytes);
	}
	if (waitpid(child, &status, 0) != child)
		die("waitpid");
	if (status || read(channel[0], result, bytes) != (ssize_t)bytes) {
		fprintf(stderr, "a child process that measures has ended: status %#x\n", status);
		exit(1);
	}
	close(channel[0]);
	close(channel[1]);
}

void die(const char *what)
{
	perror(what);
	exit(1);
}
