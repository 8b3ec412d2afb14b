// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Runs attack/, or any other program, under dune-run-decoy, and watches from
 * outside, as root in a machine of which nothing is needed afterwards:
 *
 * - touches of the decoy, which dune-run-decoy itself notes (runtime.c);
 * - faults of the kernel in the decoy, by a tracepoint, with the kernel's stack;
 * - files that are executed: all but dune-run-decoy would run natively;
 * - findings of attack/ itself (descriptors in reach, mappings in the supervisor range).
 *
 *	watch [--state FILE] [--seconds N] [--seed N] [--cases N] [--calls N]
 *	      [--kind NAME] [--limit SECONDS] [--runner NAME] [--mix N] [--unchecked]
 *	      [--unfiltered] [-- PROGRAM ARGS...]
 *
 * Without PROGRAM: cases of attack/, from the number in FILE on, until the
 * time is over or N cases were run. With --mix one of N calls is changed first
 * (runtime.c). With --unchecked the runner is one without checks (../unchecked/): what its
 * processes execute natively is watched, too, and what they report; with --unfiltered only the
 * latter. Exit status 1: a touch, a fault, a native execution or a finding;
 * the first ones of each kind are printed as FOUND lines.
 */
#define _GNU_SOURCE
#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[PATH_MAX - 64], attacker[PATH_MAX];

void fail(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	exit(2);
}

bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return good;
}

/* ---- cases ------------------------------------------------------------------ */

struct state {
	u64 seed, cases, calls, succeeded, seconds, found, at_exit;
};

/* Cases between two writes of the state. tools/suite/src/decoy.rs has the same number. */
#define BATCH	48

#define STATE_FORMAT \
	"next seed %lu, cases %lu, calls %lu, succeeded %lu, seconds %lu, found %lu, at exit %lu"

static void load(const char *path, struct state *s)
{
	FILE *f = path ? fopen(path, "r") : NULL;

	if (!f)
		return;
	if (fscanf(f, STATE_FORMAT, &s->seed, &s->cases, &s->calls, &s->succeeded, &s->seconds,
		   &s->found, &s->at_exit) != 7) {
		printf("Bail out! %s is broken: remove it to start anew\n", path);
		exit(2);
	}
	fclose(f);
}

static void save(const char *path, const struct state *s)
{
	char new[PATH_MAX];
	FILE *f;

	if (!path)
		return;
	snprintf(new, sizeof(new), "%s.new", path);
	f = fopen(new, "w");
	if (!f)
		fail(new);
	fprintf(f, STATE_FORMAT "\n", s->seed, s->cases, s->calls, s->succeeded, s->seconds,
		s->found, s->at_exit);
	fclose(f);
	rename(new, path);
}

struct arguments {
	u64 seconds, cases, calls, limit, mix;
	char *state, *kind, *runner;
};

/* Cases of attack/, from that of the state on, in batches. */
static void attack(struct state *s, const struct arguments *a)
{
	u64 start = now(), last = UINT64_MAX;
	char first[24], count[24], most[24];
	char *argv[] = { attacker, first, count, most, a->kind, NULL };
	int again = 0;

	if (a->cases)
		last = s->seed + a->cases;
	while (s->seed < last && (!a->seconds || now() - start < a->seconds)) {
		u64 batch = BATCH, was = now(), old_found = found, old_exit = at_exit;
		u64 old_calls = record->calls, old_good = record->succeeded;
		int status;

		if (batch > last - s->seed)
			batch = last - s->seed;
		snprintf(first, sizeof(first), "%lu", s->seed);
		snprintf(count, sizeof(count), "%lu", batch);
		snprintf(most, sizeof(most), "%lu", a->calls);
		record->seed = s->seed;
		give_device();
		status = run(argv, 30 + 8 * batch);
		/* a case that ends the run is skipped, with a line */
		if (status && record->seed + 1 < s->seed + batch) {
			printf("# seed %lu ended the batch: status 0x%x\n", record->seed, status);
			batch = record->seed + 1 - s->seed;
			if (batch == 1 && ++again > 20)
				finding("start", "the attack does not start");
		} else {
			again = 0;
		}
		s->seed += batch;
		s->cases += batch;
		s->calls += record->calls - old_calls;
		s->succeeded += record->succeeded - old_good;
		s->seconds += now() - was;
		s->found += found - old_found;
		s->at_exit += at_exit - old_exit;
		save(a->state, s);
		if (again > 20)
			break;
		clean_up();
	}
}

/* ---- the command ------------------------------------------------------------ */

/* Returns false where an option is wrong. */
static bool parse_arguments(int argc, char **argv, struct arguments *a, struct state *s)
{
	static const struct option options[] = {
		{ "state", 1, NULL, 's' }, { "seconds", 1, NULL, 't' }, { "seed", 1, NULL, 'n' },
		{ "cases", 1, NULL, 'c' }, { "calls", 1, NULL, 'm' }, { "kind", 1, NULL, 'k' },
		{ "limit", 1, NULL, 'l' }, { "runner", 1, NULL, 'r' },
		{ "mix", 1, NULL, 'x' }, { "unchecked", 0, NULL, 'u' },
		{ "unfiltered", 0, NULL, 'f' }, { NULL, 0, NULL, 0 },
	};
	u64 *number;
	int o;

	while ((o = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		number = NULL;
		switch (o) {
		case 's':
			a->state = optarg;
			load(a->state, s);
			break;
		case 't':
			number = &a->seconds;
			break;
		case 'n':
			number = &s->seed;
			break;
		case 'c':
			number = &a->cases;
			break;
		case 'm':
			number = &a->calls;
			break;
		case 'k':
			a->kind = optarg;
			break;
		case 'r':
			a->runner = optarg;
			break;
		case 'u':
			unchecked = true;
			break;
		case 'f':
			unfiltered = true;
			break;
		case 'x':
			number = &a->mix;
			break;
		case 'l':
			number = &a->limit;
			break;
		default:
			return false;
		}
		if (number)
			*number = strtoul(optarg, NULL, 0);
	}
	return true;
}

/* All that has to exist before a program runs. */
static void set_up(const struct arguments *a)
{
	ssize_t n = readlink("/proc/self/exe", directory, sizeof(directory) - 1);

	directory[n > 0 ? n : 0] = 0;
	*strrchr(directory, '/') = 0;
	snprintf(attacker, sizeof(attacker), "%s/attack", directory);
	snprintf(runner, sizeof(runner), "%s/%s", directory, a->runner);
	give_device();
	prepare_machine();
	sensors_start();
	record->mix = a->mix;
}

static void report(void)
{
	struct utsname uts;
	u64 i, numbers = 0;

	uname(&uts);
	for (i = 0; i < CALLS_MAX; i++)
		numbers += record->by_number[i] != 0;
	report_kinds();
	printf("Linux %s: %lu calls of %lu numbers, %lu succeeded; %lu found, "
	       "%lu faults at the end of a process\n",
	       uts.release, record->calls, numbers, record->succeeded, found, at_exit);
	/* for decoy.bash */
	printf("# counts: calls=%lu numbers=%lu succeeded=%lu found=%lu\n", record->calls,
	       numbers, record->succeeded, found);
}

int main(int argc, char **argv)
{
	struct arguments a = { .calls = 2400, .limit = 600, .runner = "dune-run-decoy" };
	struct state state = { .seed = 1 };

	if (!parse_arguments(argc, argv, &a, &state))
		return 2;
	set_up(&a);
	if (optind >= argc) {
		attack(&state, &a);
	} else {
		int status = run(argv + optind, a.limit);

		if (!unchecked && WIFEXITED(status) && WEXITSTATUS(status) >= 126)
			finding("start", "%s does not start", argv[optind]);
		clean_up();
	}
	report();
	if (optind >= argc)
		printf("in all: %lu cases, next seed %lu, %lu calls, %lu succeeded, %lu s, "
		       "%lu found\n", state.cases, state.seed, state.calls, state.succeeded,
		       state.seconds, state.found);
	return found != 0;
}
