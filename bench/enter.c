// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The cost of entering Dune mode, with few and with many mappings, and the
 * memory of the tables afterwards. Each measurement has a process of its own.
 */
#define _GNU_SOURCE
#include "dune_mode.h"

#include <sys/mman.h>
#include <unistd.h>

#define PROCESSES 31

/* One entry into Dune mode, by a process with so many mappings more than it starts with. */
struct entry {
	uint64_t mappings;
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

static void measure(void *result)
{
	struct entry *entry = result;
	uint64_t nothing = overhead(), t;
	struct dune_stats stats;
	int err;

	map_many(entry->mappings);
	t = now();
	err = dune_enter(NULL);
	entry->cost = now() - t - nothing;
	must_have_entered(err);
	/* as in examples/hello.c */
	puts("hello");
	dune_stats(&stats);
	entry->table_bytes = stats.table_bytes;
}

static struct entry enter(unsigned int mappings)
{
	struct entry entry = { .mappings = mappings };
	uint64_t sample[PROCESSES];
	int i;

	for (i = 0; i < PROCESSES; i++) {
		in_process(measure, &entry, sizeof(entry));
		sample[i] = entry.cost;
	}
	entry.cost = median(sample, PROCESSES);
	return entry;
}

int main(void)
{
	struct entry few, many;

	setvbuf(stdout, NULL, _IOLBF, 0);
	few = enter(10);
	many = enter(10000);
	figure("enter", NO_FIGURE, few.cost, NO_FIGURE);
	figure("enter_10000", few.cost, many.cost, NO_FIGURE);
	figure_of("memory_tables", "bytes", NO_FIGURE, few.table_bytes, NO_FIGURE, 0);
	return 0;
}
