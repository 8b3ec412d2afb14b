// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Threads that enter Dune mode and end, one after another, while the first thread stays
 * outside. Fails when a thread that has ended still takes memory or a descriptor, or when
 * its counters are lost.
 */
#include <dune.h>
#include <linux/dune.h>
#include <pthread.h>
#include <sys/resource.h>
#include "tap.h"

#define DESCRIPTORS	80
#define ENDED		100	/* more than there are descriptors */

static volatile int failed;

static void *enter_and_end(void *arg)
{
	if (dune_enter(NULL))
		failed++;
	return arg;
}

static void make_threads(int n)
{
	pthread_t thread;

	while (n--) {
		if (pthread_create(&thread, NULL, enter_and_end, NULL))
			bail("pthread_create() failed");
		pthread_join(thread, NULL);
	}
}

int main(void)
{
	struct rlimit few = { DESCRIPTORS, DESCRIPTORS };
	struct dune_stats before, after;

	if (setrlimit(RLIMIT_NOFILE, &few))
		bail("setrlimit: %m");
	make_threads(1);
	dune_stats(&before);
	make_threads(ENDED);
	dune_stats(&after);
	is(failed, 0, "%d threads enter and end, with %d descriptors", ENDED, DESCRIPTORS);
	is(after.arena_bytes, before.arena_bytes, "threads that end leave no memory in use");
	ok(after.counters[DUNE_COUNT_EXITS] >= before.counters[DUNE_COUNT_EXITS] + ENDED,
	   "the exits of threads that ended are counted");
	return done();
}
