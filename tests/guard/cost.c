// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What the guard costs: getpid(), the first touch of a page, and fork() with exit and wait, without
 * the guard and with it, and a VMMCALL that does nothing. The figures are ticks of the TSC, which
 * are instructions in counting mode (dunectl machine run --counting); they are compared only there.
 * Fails there if an operation executes more instructions with the guard than without it.
 */
#define _GNU_SOURCE
#include "attack.h"
#include "cpu.h"
#include "guard.h"
#include "klog.h"
#include "tap.h"
#include "timing.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

#define COUNT	301

/* Per cent: interrupts come at different moments. */
#define TOLERANCE	3

static char *pages;

static void get_pid(int i)
{
	syscall(SYS_getpid);
}

static void touch(int i)
{
	pages[i * 4096L] = 1;
}

static void fork_and_wait(int i)
{
	int pid = fork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
}

static const struct {
	const char *name;
	void (*run)(int i);
} operations[] = {
	{ "getpid()", get_pid },
	{ "the first touch of a page", touch },
	{ "fork(), exit and wait", fork_and_wait },
};

#define OPERATIONS	(sizeof(operations) / sizeof(operations[0]))

static int compare(const void *a, const void *b)
{
	unsigned long x = *(const unsigned long *)a, y = *(const unsigned long *)b;

	return (x > y) - (x < y);
}

/* The median. */
static unsigned long measure(void (*run)(int i))
{
	static unsigned long ticks[COUNT];
	int i;

	for (i = 0; i < COUNT; i++) {
		unsigned long start = __rdtsc();

		run(i);
		ticks[i] = __rdtsc() - start;
	}
	qsort(ticks, COUNT, sizeof(ticks[0]), compare);
	return ticks[COUNT / 2];
}

static void measure_all(unsigned long medians[OPERATIONS])
{
	unsigned int i;

	for (i = 0; i < OPERATIONS; i++) {
		pages = mmap(NULL, COUNT * 4096L, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		madvise(pages, COUNT * 4096L, MADV_NOHUGEPAGE);
		medians[i] = measure(operations[i].run);
		munmap(pages, COUNT * 4096L);
	}
}

/* Whether the TSC counts instructions: a loop of two has the same number of ticks each time. */
static bool counts_instructions(void)
{
	unsigned long i, round, start, ticks;

	for (round = 0; round < 5; round++) {
		start = __rdtsc();
		for (i = 1000; i; i--)
			asm volatile("" : "+r" (i));
		ticks = __rdtsc() - start;
		if (ticks < 1900 || ticks > 2200)
			return false;
	}
	return true;
}

int main(void)
{
	unsigned long without[OPERATIONS], with[OPERATIONS];
	bool counting = counts_instructions();
	struct klog log;
	unsigned int i;
	int fd;

	begin(120);
	klog_begin(&log);
	pin_to(usable_cpu(0));
	fd = guard_open();
	attack_load();
	/* The first time warms up. */
	measure_all(without);
	measure_all(without);
	is(guard_request(fd, DUNE_GUARD_LAUNCH), 0, "a launch");
	measure_all(with);
	for (i = 0; i < OPERATIONS; i++) {
		diag("%s: %lu without the guard, %lu with it", operations[i].name, without[i],
		     with[i]);
		if (!counting)
			skip("the TSC does not count instructions here", "%s",
			     operations[i].name);
		else
			ok(with[i] * 100 <= without[i] * (100 + TOLERANCE),
			   "%s costs the same with the guard", operations[i].name);
	}
	is(attack("cost", 0, 0, 0), 0, "a VMMCALL that does nothing");
	diag("VMMCALL: %llu", found);
	is(guard_unload(fd), 0, "the module is unloaded");
	klog_end(&log);
	return done();
}
