// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Several address spaces of one process, and changes of its memory. Fails when a guest reads what
 * the process no longer has: after a change of a range of many gigabytes, in any address space, or
 * with a new vCPU of an address space that had none for a while. On Intel also fails when such a
 * change drops memory outside of its range, or looks at each gigabyte of its range by itself (then
 * it kicks the vCPUs once for each one that has pages), or when closing a vCPU kicks others. The
 * kernel may kick and drop at any time for reasons of its own, and a change kicks again when it was
 * preempted, so each of these verdicts needs one of several rounds. The test counts events
 * of the trace, so it also fails when the trace shows none for a change and a fault that certainly
 * happened.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "tap.h"
#include "timing.h"
#include "tracing.h"
#include "x86.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define SPACES	3
/* In the first terabyte, which guests' tables can map (guest_memory.c). */
#define FAR	(256 * GB)
#define SIZE	(600 * GB)
#define CHANGED	(550 * GB)	/* the part of SIZE that is changed */

/* The pages that are used, each in another gigabyte; the last one is not changed. */
static const u64 places[] = { 0, GB, 300 * GB + 8 * 4096, SIZE - 4096 };
#define PLACES	(int)(sizeof(places) / sizeof(places[0]))

/* How often a verdict on what the kernel may disturb is tried. */
#define ROUNDS	8

static struct guest guests[SPACES];

static volatile u64 *word(int place)
{
	return (volatile u64 *)(FAR + places[place]);
}

static void cover(struct guest *g)
{
	for (int i = 0; i < PLACES; i++)
		guest_cover(g, FAR + places[i]);
}

/* Returns the number of words, over all guests, that are not as in @want. */
static int wrong_words(const u64 *want)
{
	int wrong = 0;

	for (unsigned int s = 0; s < SPACES; s++) {
		for (int i = 0; i < PLACES; i++) {
			enum guest_end end = guest_call(&guests[s], guest_load, (void *)word(i));

			if (end == GUEST_DONE && guests[s].value == want[i])
				continue;
			diag("address space %u, place %d: %s, %#lx", s, i,
			     guest_end_name(&guests[s], end), guests[s].value);
			wrong++;
		}
	}
	return wrong;
}

static int min_of(int a, int b)
{
	return a < b ? a : b;
}

static void fill(const u64 *values)
{
	for (int i = 0; i < PLACES; i++)
		*word(i) = values[i];
}

/* Events of a name are counted from here to events_end(). No other process has a vCPU. */
static void events_begin(const char *name)
{
	char file[64];

	snprintf(file, sizeof(file), "events/dune/%s/enable", name);
	trace_write(file, "1");
	trace_clear();
}

static int events_end(const char *name)
{
	char text[64];
	int n;

	snprintf(text, sizeof(text), " %s: ", name);
	n = trace_count(text);
	trace_write("events/dune/enable", "0");
	return n;
}

/* Verdicts that nothing was traced are worth nothing if tracing does not work. */
static void trace_shows_events(void)
{
	int kicks, faults;

	*word(0) = 1;
	guest_call(&guests[0], guest_load, (void *)word(0));
	events_begin("dune_kick");
	madvise((void *)word(0), 4096, MADV_DONTNEED);
	kicks = events_end("dune_kick");
	events_begin("dune_fault");
	guest_call(&guests[0], guest_load, (void *)word(0));
	faults = events_end("dune_fault");
	ok(kicks > 0 && faults > 0, "a change and a fault are traced (%d, %d)", kicks, faults);
}

static void wide_change(bool traced)
{
	static const u64 old[PLACES] = { 11, 12, 13, 14 }, kept[PLACES] = { 0, 0, 0, 14 };
	int kicks = INT_MAX, faults = INT_MAX, wrong = 0, stale = 0, err = 0;

	for (int round = 0; round < ROUNDS && (kicks >= PLACES - 1 || faults); round++) {
		fill(old);
		wrong += wrong_words(old);
		events_begin("dune_kick");
		err |= madvise((void *)FAR, CHANGED, MADV_DONTNEED);
		kicks = min_of(kicks, events_end("dune_kick"));
		events_begin("dune_fault");
		guest_call(&guests[0], guest_load, (void *)word(PLACES - 1));
		faults = min_of(faults, events_end("dune_fault"));
		stale += wrong_words(kept);
	}
	ok(!wrong, "each address space reads the process's memory");
	ok(!err && !stale, "after a change of 550 GB none reads what the process no longer has");
	if (!traced) {
		skip("no events to count", "fewer kicks than gigabytes");
		skip("no events to count", "memory outside of the range stays");
		return;
	}
	ok(kicks >= 0 && kicks < PLACES - 1,
	   "the change kicks the vCPUs less often than for each gigabyte (%d)", kicks);
	ok(!faults, "memory outside of the range stays (%d faults)", faults);
}

/* Closes the vCPU of @g. Returns how many kicks there were. */
static int close_vcpu(struct guest *g)
{
	munmap(g->run, g->info.run_size);
	events_begin("dune_kick");
	close(g->fd);
	return events_end("dune_kick");
}

static bool open_vcpu(struct guest *g)
{
	struct dune_create_vcpu c = { .size = sizeof(c) };
	int dev = g->dev, fd = ioctl(dev, DUNE_CREATE_VCPU, &c);
	bool opened = fd >= 0 && !guest_adopt(g, fd);

	g->dev = dev;
	cover(g);
	return opened;
}

/* The last vCPU of an address space is closed, the memory changes, and then there is another. */
static void no_vcpu_for_a_while(bool traced)
{
	static const u64 old[PLACES] = { 21, 22, 23, 24 }, fresh[PLACES] = { 31, 32, 33, 34 };
	int kicks = INT_MAX, wrong = 0, stale = 0;
	bool opened = true;

	for (int round = 0; round < ROUNDS && opened && kicks; round++) {
		fill(old);
		wrong += wrong_words(old);
		kicks = min_of(kicks, close_vcpu(&guests[1]));
		madvise((void *)FAR, SIZE, MADV_DONTNEED);
		fill(fresh);
		opened = open_vcpu(&guests[1]);
		stale += opened && wrong_words(fresh);
	}
	ok(!wrong, "each address space reads new memory");
	if (traced)
		ok(!kicks, "closing the only vCPU of an address space kicks no other (%d)", kicks);
	else
		skip("no events to count", "closing a vCPU kicks no other");
	ok(opened, "the address space gets another vCPU");
	ok(!stale, "the new vCPU reads what the process has now");
}

int main(void)
{
	bool traced;

	begin(120);
	if (mmap((void *)FAR, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS |
		 MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) != (void *)FAR)
		bail("mmap: %s", strerror(errno));
	for (unsigned int s = 0; s < SPACES; s++) {
		guest_open(&guests[s]);
		cover(&guests[s]);
	}
	traced = guests[0].info.granules && trace_mount("events/dune");
	if (traced)
		trace_shows_events();
	else
		skip("no events to count", "a change and a fault are traced");
	wide_change(traced);
	no_vcpu_for_a_while(traced);
	for (unsigned int s = 0; s < SPACES; s++)
		guest_close(&guests[s]);
	return done();
}
