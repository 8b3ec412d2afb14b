// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A system call that the module does not make for a guest, by the stub (struct dune_stub in
 * <linux/dune.h>), as in the sandbox: it is executed in user mode, and the guest gets its result.
 * The guest is that of the module's tests, in ring 0, so the sandbox's way from ring 3 and its
 * check are not measured. A flag forces this path, as in slow.c.
 */
#define _GNU_SOURCE
#include "bench.h"
#include "by_stub.h"
#include "guest.h"
#include "rseq.h"

#include <sys/syscall.h>
#include <unistd.h>

static uint64_t sample[ROUNDS], nothing[ROUNDS];
static uint64_t exits_before, exits_after;
static struct guest g;

static uint64_t exits(void)
{
	return g.run->counters[DUNE_COUNT_EXITS] - g.run->counters[DUNE_COUNT_INTERRUPT];
}

/* In the guest. */
static u64 make_calls(void *unused)
{
	uint64_t t;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		t = now();
		nothing[i] = now() - t;
	}
	exits_before = exits();
	for (i = 0; i < ROUNDS; i++) {
		t = now();
		hypercall0(SYS_getpid);
		sample[i] = now() - t;
	}
	exits_after = exits();
	return 0;
}

int main(void)
{
	uint64_t on_linux = MEASURE(syscall(SYS_getpid));
	char *stub;

	rseq_drop();
	stub = stub_open(&g);
	g.run->flags = DUNE_RUN_SLOW_SYSCALL;
	/* The first time, pages of the program are read that the guest does not have yet. */
	if (stub_call(&g, stub, make_calls, NULL) != GUEST_DONE ||
	    stub_call(&g, stub, make_calls, NULL) != GUEST_DONE)
		die("a run by the stub");
	figure("getpid_native", on_linux, median(sample, ROUNDS) - median(nothing, ROUNDS),
	       (double)(exits_after - exits_before) / ROUNDS);
	return 0;
}
