// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Explores the border control breadth first, up to a number of states, and prints the shortest
 * way to the first state that violates an invariant. The exit status is 0 if there is none, 1 if
 * there is one, and 2 if the exploration cannot be made.
 */
#include "world.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct config config = { .modules = 1, .has_iommu = true };

static u32 limit = 1000000;
static struct key *keys;
static u32 *parents, *table, table_size, count;

static u32 hash(const struct key *key)
{
	u64 h = 0x9e3779b97f4a7c15, word;

	for (unsigned int i = 0; i < sizeof(*key); i += 8) {
		memcpy(&word, key->bytes + i, 8);
		h = (h ^ word) * 0xff51afd7ed558ccd;
		h ^= h >> 32;
	}
	return h;
}

/* Returns whether the state is new, and was added. */
static bool add(const struct key *key, u32 parent)
{
	u32 slot = hash(key) & (table_size - 1);

	for (; table[slot]; slot = (slot + 1) & (table_size - 1)) {
		if (!memcmp(&keys[table[slot] - 1], key, sizeof(*key)))
			return false;
	}
	keys[count] = *key;
	parents[count] = parent;
	table[slot] = ++count;
	return true;
}

/* Prints the events that lead from @parent to the state with this key. */
static void print_step(u32 parent, const struct key *key)
{
	struct event events[EVENTS];
	struct world from, w;
	struct key next;
	int events_count;

	key_unpack(&from, &keys[parent]);
	events_count = adversary_events(&from, events);
	for (int i = 0; i < events_count; i++) {
		w = from;
		world_apply(&w, &events[i], NULL);
		key_pack(&next, &w);
		if (memcmp(&next, key, sizeof(next)))
			continue;
		w = from;
		world_apply(&w, &events[i], stdout);
		return;
	}
}

static void print_trace(u32 state)
{
	if (!state)
		return;
	print_trace(parents[state]);
	print_step(parents[state], &keys[state]);
}

static int violated(u32 state, const struct world *w, const struct event *event, bool is_drain)
{
	struct world again;

	print_trace(state);
	key_unpack(&again, &keys[state]);
	if (is_drain)
		printf("the administrator ends everything:\n");
	if (is_drain)
		world_drain(&again, stdout);
	else
		world_apply(&again, event, stdout);
	printf("violated: %s: %s\n", w->violated, w->why);
	return 1;
}

/* Returns 1 if an invariant is violated. */
static int explore(u32 *depth, u64 *steps)
{
	struct event events[EVENTS];
	struct world from, w;
	struct key key;
	u32 end_of_level = 1;

	world_init(&w);
	w.violated = NULL;
	key_pack(&key, &w);
	add(&key, 0);
	for (u32 state = 0; state < count; state++) {
		int events_count;

		if (state == end_of_level) {
			end_of_level = count;
			++*depth;
		}
		key_unpack(&from, &keys[state]);
		w = from;
		world_drain(&w, NULL);
		if (w.violated)
			return violated(state, &w, NULL, true);
		events_count = adversary_events(&from, events);
		for (int i = 0; i < events_count; i++) {
			w = from;
			world_apply(&w, &events[i], NULL);
			++*steps;
			if (w.violated)
				return violated(state, &w, &events[i], false);
			if (count < limit) {
				key_pack(&key, &w);
				add(&key, state);
			}
		}
		/* States of the last level have no successors here, but all of them are checked. */
	}
	return 0;
}

static void usage(void)
{
	fprintf(stderr, "usage: explore [--class S|D] [--choice 0-3] [--modules 1-2] [--sealed]\n"
		"               [--no-iommu] [--limit STATES]\n");
	exit(2);
}

static void parse(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--sealed")) {
			config.is_sealed = true;
			continue;
		} else if (!strcmp(argv[i], "--no-iommu")) {
			config.has_iommu = false;
			continue;
		} else if (!strcmp(argv[i], "--class")) {
			config.class = *value == 'S' ? CLASS_S : CLASS_D;
		} else if (!strcmp(argv[i], "--choice")) {
			config.choice = atoi(value);
		} else if (!strcmp(argv[i], "--modules")) {
			config.modules = atoi(value);
		} else if (!strcmp(argv[i], "--limit")) {
			limit = strtoul(value, NULL, 0);
		} else {
			usage();
		}
		i++;
	}
	if (config.choice > CHOICE_PANIC || config.modules < 1 || config.modules > MODULES || !limit)
		usage();
}

int main(int argc, char **argv)
{
	struct timespec begin, end;
	u64 steps = 0;
	u32 depth = 0;
	int status;

	parse(argc, argv);
	for (table_size = 1024; table_size < limit + limit / 2; table_size *= 2)
		;
	keys = malloc((size_t)limit * sizeof(*keys));
	parents = malloc((size_t)limit * sizeof(*parents));
	table = calloc(table_size, sizeof(*table));
	if (!keys || !parents || !table) {
		fprintf(stderr, "explore: there is no memory for %u states\n", limit);
		return 2;
	}
	clock_gettime(CLOCK_MONOTONIC, &begin);
	status = explore(&depth, &steps);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("explored: %u states%s, depth %u, %llu steps, %.1f s\n", count,
	       count < limit ? ", which are all" : "", depth, steps,
	       end.tv_sec - begin.tv_sec + (end.tv_nsec - begin.tv_nsec) / 1e9);
	return status;
}
