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

struct config config = {
	.modules = 1, .cpus = CPUS, .stacks = STACKS, .choice = CHOICE_LOG, .has_iommu = true,
};

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

/* Lets the event happen that leads from this state to one with the key of @state. */
static void repeat_step(struct world *w, u32 state)
{
	struct event events[EVENTS];
	int events_count = adversary_events(w, events);
	struct world from = *w;
	struct key key;

	for (int i = 0; i < events_count; i++) {
		*w = from;
		world_apply(w, &events[i], NULL);
		key_pack(&key, w);
		if (memcmp(&key, &keys[state], sizeof(key)))
			continue;
		*w = from;
		world_apply(w, &events[i], stdout);
		return;
	}
}

/* Repeats the way to this state, in which the CPUs and the stacks keep their names. */
static void repeat(struct world *w, u32 state)
{
	if (!state) {
		world_init(w);
		return;
	}
	repeat(w, parents[state]);
	repeat_step(w, state);
}

/* Prints the way to a violation after this state: by one more event, or when all is ended. */
static int violated(u32 state, bool is_drain)
{
	struct event events[EVENTS];
	struct world from, w;
	int events_count;

	repeat(&from, state);
	events_count = adversary_events(&from, events);
	w = from;
	if (is_drain) {
		printf("the administrator ends everything:\n");
		world_drain(&w, stdout);
	}
	for (int i = 0; i < events_count && !w.violated; i++) {
		w = from;
		world_apply(&w, &events[i], NULL);
		if (!w.violated)
			continue;
		w = from;
		world_apply(&w, &events[i], stdout);
	}
	printf("violated: %s: %s\n", w.violated, w.why);
	return 1;
}

/*
 * Returns 1 if an invariant is violated. When there is no room for more states, those that there
 * are still have all of their events.
 */
static int explore(u32 *depth, u64 *steps)
{
	struct event events[EVENTS];
	struct world from, w;
	struct key key;
	u32 end_of_level = 1;

	world_init(&w);
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
			return violated(state, true);
		events_count = adversary_events(&from, events);
		for (int i = 0; i < events_count; i++) {
			w = from;
			world_apply(&w, &events[i], NULL);
			++*steps;
			if (w.violated)
				return violated(state, false);
			if (count < limit) {
				key_pack(&key, &w);
				add(&key, state);
			}
		}
	}
	return 0;
}

static void usage(void)
{
	fprintf(stderr, "usage: explore [--class S|D] [--choice lower|log|stop|panic]\n"
		"               [--modules 1-2] [--cpus 1-2] [--stacks 1-2]\n"
		"               [--from loaded|armed|sealed] [--no-iommu] [--limit STATES]\n");
	exit(2);
}

/* Returns the index of a word in a list, some of whose places may be empty. */
static u8 choose(const char *word, const char *const *words, u8 count)
{
	u8 i = 0;

	while (i < count && (!words[i] || strcmp(word, words[i])))
		i++;
	if (i == count)
		usage();
	return i;
}

static void parse(int argc, char **argv)
{
	static const char *const classes[] = { [CLASS_D] = "D", [CLASS_S] = "S" };
	static const char *const choices[] = {
		[CHOICE_LOWER] = "lower", [CHOICE_LOG] = "log", [CHOICE_STOP] = "stop",
		[CHOICE_PANIC] = "panic",
	};
	static const char *const starts[REGISTRATION_DYING] = {
		[REGISTRATION_LOADED] = "loaded", [REGISTRATION_ARMED] = "armed",
		[REGISTRATION_SEALED] = "sealed",
	};

	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--no-iommu")) {
			config.has_iommu = false;
			continue;
		} else if (!strcmp(argv[i], "--class")) {
			config.class = choose(value, classes, 2);
		} else if (!strcmp(argv[i], "--from")) {
			config.from = choose(value, starts, REGISTRATION_DYING);
		} else if (!strcmp(argv[i], "--choice")) {
			config.choice = choose(value, choices, CHOICE_PANIC + 1);
		} else if (!strcmp(argv[i], "--modules")) {
			config.modules = atoi(value);
		} else if (!strcmp(argv[i], "--cpus")) {
			config.cpus = atoi(value);
		} else if (!strcmp(argv[i], "--stacks")) {
			config.stacks = atoi(value);
		} else if (!strcmp(argv[i], "--limit")) {
			limit = strtoul(value, NULL, 0);
		} else {
			usage();
		}
		i++;
	}
	if (config.modules < 1 || config.modules > MODULES || config.cpus < 1 ||
	    config.cpus > CPUS || config.stacks < 1 || config.stacks > STACKS || !limit)
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
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	status = explore(&depth, &steps);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	printf("explored: %u states%s, to depth %u, %llu steps, %.1f s of the processor\n", count,
	       !status && count < limit ? ", which are all" : "", depth, steps,
	       end.tv_sec - begin.tv_sec + (end.tv_nsec - begin.tv_nsec) / 1e9);
	return status;
}
