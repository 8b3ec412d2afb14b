// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The cost of entering Dune mode, with few and with many mappings, and the
 * memory of the tables afterwards. Each measurement has a process of its own.
 */
#define _GNU_SOURCE
#include "bench.h"

#include <dune.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES 31

struct result {
	uint64_t cost;
	uint64_t table_bytes;
};

/* Neighbouring pages with different rights are separate mappings. */
static void map_many(unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		int prot = i & 1 ? PROT_READ : PROT_READ | PROT_WRITE;

		if (mmap(NULL, 4096, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
			die("mmap");
	}
}

static struct result enter_once(unsigned int mappings)
{
	struct result result = { 0 };
	int channel[2], status;
	pid_t child;

	if (pipe(channel))
		die("pipe");
	child = fork();
	if (!child) {
		struct dune_stats stats;
		uint64_t nothing = overhead(), t;
		int err;

		map_many(mappings);
		t = now();
		err = dune_enter(NULL);
		result.cost = now() - t - nothing;
		if (err)
			_exit(1);
		/* as in examples/hello.c */
		puts("hello");
		dune_stats(&stats);
		result.table_bytes = stats.table_bytes;
		_exit(write(channel[1], &result, sizeof(result)) != sizeof(result));
	}
	waitpid(child, &status, 0);
	if (status || read(channel[0], &result, sizeof(result)) != sizeof(result)) {
		fprintf(stderr, "a process could not enter Dune mode\n");
		exit(1);
	}
	close(channel[0]);
	close(channel[1]);
	return result;
}

static struct result enter(unsigned int mappings)
{
	uint64_t sample[PROCESSES];
	struct result result;
	int i;

	for (i = 0; i < PROCESSES; i++) {
		result = enter_once(mappings);
		sample[i] = result.cost;
	}
	result.cost = median(sample, PROCESSES);
	return result;
}

int main(void)
{
	struct result few, many;

	setvbuf(stdout, NULL, _IOLBF, 0);
	few = enter(10);
	many = enter(10000);
	figure("enter", NONE, few.cost, NONE);
	figure("enter_10000", few.cost, many.cost, NONE);
	figure_of("memory_tables", "bytes", NONE, few.table_bytes, NONE, 0);
	return 0;
}
