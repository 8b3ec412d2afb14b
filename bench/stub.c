// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A system call that the module does not make for a guest, by the stub (struct dune_stub in
 * <linux/dune.h>), as in the sandbox: it is executed in user mode, and the guest gets its result.
 * The guest is that of the module's tests, in ring 0, so the sandbox's way from ring 3 and its
 * check are not measured. A flag forces this path, as in slow.c.
 */
#define _GNU_SOURCE
#include "bench.h"
#include "by_alone.h"
#include "child.h"

#include <sys/syscall.h>
#include <unistd.h>

/* What the guest leaves for the parent: it ends with its process. */
static struct shared {
	uint64_t sample[ROUNDS], nothing[ROUNDS];
	uint64_t exits;
} *shared;

static uint64_t exits(void)
{
	return alone_run->counters[DUNE_COUNT_EXITS] - alone_run->counters[DUNE_COUNT_INTERRUPT];
}

/* In the guest. */
static void make_calls(void)
{
	uint64_t before, t;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		t = now();
		shared->nothing[i] = now() - t;
	}
	before = exits();
	for (i = 0; i < ROUNDS; i++) {
		t = now();
		hypercall0(SYS_getpid);
		shared->sample[i] = now() - t;
	}
	shared->exits = exits() - before;
}

static u64 measure(void *unused)
{
	alone_slow(true);
	/* The first time, pages of the program are read that the guest does not have yet. */
	make_calls();
	make_calls();
	return 0;
}

static void measure_in_child(void *unused)
{
	alone_start(0, measure, NULL);
}

int main(void)
{
	uint64_t on_linux = MEASURE(syscall(SYS_getpid));

	shared = shared_alloc(sizeof(*shared));
	if (in_child(measure_in_child, NULL, 60).code)
		die("a guest that runs by the stub");
	figure("getpid_native", on_linux,
	       median(shared->sample, ROUNDS) - median(shared->nothing, ROUNDS),
	       (double)shared->exits / ROUNDS);
	return 0;
}
