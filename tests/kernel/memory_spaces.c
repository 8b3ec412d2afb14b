// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Several address spaces of one process, and changes of its memory. Fails when a guest reads what
 * the process no longer has: after a change of a range of many gigabytes, in any address space, or
 * with a new vCPU of an address space that had none for a while. Also fails when memory outside of
 * the range is dropped for good, and on Intel when such a change looks at each gigabyte of its
 * range by itself (then it kicks the vCPUs once for each of them), or when closing a vCPU kicks
 * others.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "tap.h"
#include "timing.h"
#include "tracing.h"
#include "x86.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define SPACES	3
/* In the first terabyte, which guests' tables can map (guest_memory.c). */
#define FAR	(256 * GB)
#define SIZE	(600 * GB)
#define CHANGED	(550 * GB)	/* the part of SIZE that is changed */

/* The pages that are used; the last one is not changed. */
static const u64 places[] = { 0, GB, 300 * GB + 8 * 4096, SIZE - 4096 };
#define PLACES	(sizeof(places) / sizeof(places[0]))

static struct guest guests[SPACES];

static volatile u64 *word(unsigned int place)
{
	return (volatile u64 *)(FAR + places[place]);
}

static void cover(struct guest *g)
{
	for (unsigned int i = 0; i < PLACES; i++)
		guest_cover(g, FAR + places[i]);
}

/* Returns the number of words, over all guests, that are not as in @want. */
static int wrong_words(const u64 *want)
{
	int wrong = 0;

	for (unsigned int s = 0; s < SPACES; s++) {
		for (unsigned int i = 0; i < PLACES; i++) {
			enum guest_end end = guest_call(&guests[s], guest_load, (void *)word(i));

			if (end == GUEST_DONE && guests[s].value == want[i])
				continue;
			diag("address space %u, place %u: %s, %#lx", s, i,
			     guest_end_name(&guests[s], end), guests[s].value);
			wrong++;
		}
	}
	return wrong;
}

static void fill(const u64 *values)
{
	for (unsigned int i = 0; i < PLACES; i++)
		*word(i) = values[i];
}

/* Kicks are counted from here to kicks_end(). No other process has a vCPU. */
static void kicks_begin(void)
{
	trace_write("events/dune/dune_kick/enable", "1");
	trace_clear();
}

static int kicks_end(void)
{
	int n = trace_count(" dune_kick: ");

	trace_write("events/dune/dune_kick/enable", "0");
	return n;
}

static void wide_change(bool traced)
{
	static const u64 old[PLACES] = { 11, 12, 13, 14 }, kept[PLACES] = { 0, 0, 0, 14 };
	int kicks, err;

	fill(old);
	ok(!wrong_words(old), "each address space reads the process's memory");
	if (traced)
		kicks_begin();
	err = madvise((void *)FAR, CHANGED, MADV_DONTNEED);
	kicks = traced ? kicks_end() : 0;
	ok(!err && !wrong_words(kept),
	   "after a change of 550 GB none reads what the process no longer has");
	if (!traced)
		skip("no kicks to count", "one kick for 550 GB");
	else
		ok(kicks == 1, "the change kicks the vCPUs once (%d)", kicks);
}

/* The last vCPU of an address space is closed, the memory changes, and then there is another. */
static void no_vcpu_for_a_while(bool traced)
{
	static const u64 old[PLACES] = { 21, 22, 23, 24 }, fresh[PLACES] = { 31, 32, 33, 34 };
	struct dune_create_vcpu c = { .size = sizeof(c) };
	struct guest *g = &guests[1];
	int dev = g->dev, kicks, fd;

	fill(old);
	ok(!wrong_words(old), "each address space reads new memory");
	munmap(g->run, g->info.run_size);
	if (traced)
		kicks_begin();
	close(g->fd);
	kicks = traced ? kicks_end() : 0;
	ok(!kicks, "closing the only vCPU of an address space kicks no other (%d)", kicks);
	madvise((void *)FAR, SIZE, MADV_DONTNEED);
	fill(fresh);
	fd = ioctl(dev, DUNE_CREATE_VCPU, &c);
	ok(fd >= 0 && !guest_adopt(g, fd), "the address space gets another vCPU");
	g->dev = dev;
	cover(g);
	ok(!wrong_words(fresh), "the new vCPU reads what the process has now");
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
	wide_change(traced);
	no_vcpu_for_a_while(traced);
	for (unsigned int s = 0; s < SPACES; s++)
		guest_close(&guests[s]);
	return done();
}
