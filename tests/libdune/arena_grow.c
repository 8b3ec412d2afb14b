// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * An arena that grows in its place: it is small at first and grows up to its
 * limit. Fails when the whole limit is mapped from the start, when a page lies
 * above the limit, or when a mapping of the program in the way is replaced.
 */
#define _GNU_SOURCE
#include <dune.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>
#include "child.h"
#include "tap.h"
#include "x86.h"

#define MB		(1UL << 20)
#define ARENA		((char *)0x200010000000UL)
#define LIMIT		(8 * MB)
#define FAR		0x300000000000UL
#define SECONDS		60		/* for a child */

static int mapped(const char *p)
{
	unsigned char there;

	return !mincore((void *)p, 4096, &there);
}

static void test_config(struct dune_config config)
{
	config.arena_limit = config.arena_size / 2;
	is(dune_enter(&config), -EINVAL, "an arena's limit below its size: EINVAL");
	config.arena_limit = LIMIT + 4096;
	is(dune_enter(&config), -EINVAL, "an arena's limit that is no multiple of 1 MB: EINVAL");
	config.arena_limit = 2 * GB;
	is(dune_enter(&config), -EINVAL, "an arena's limit in another gigabyte: EINVAL");
	config.arena_limit = -MB;
	is(dune_enter(&config), -EINVAL, "an arena whose end exceeds 64 bits: EINVAL");
}

/* More than 2 MB of page tables where pages of 1 GB are missing. */
static void test_gigabytes(void)
{
	int i, bad = 0;

	for (i = 0; i < 600; i++) {
		char *p = mmap((void *)(FAR + i * GB), 4096, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

		if (p == MAP_FAILED)
			break;
		*p = i;
		bad += *p != (char)i;
		munmap(p, 4096);
	}
	ok(i == 600 && !bad, "memory in 600 gigabytes (%d, %d wrong)", i, bad);
}

static void test_pages(void)
{
	unsigned long pages = 0;
	char *page, *last = ARENA;

	while ((page = dune_page_alloc(1))) {
		*page = 1;
		if (page > last)
			last = page;
		pages++;
	}
	ok(pages > 5 * MB / 4096 && pages < LIMIT / 4096,
	   "the arena has %lu pages until none is left", pages);
	ok(last < ARENA + LIMIT, "no page of the arena is above its limit");
	ok(mapped(ARENA + LIMIT - 4096) && !mapped(ARENA + LIMIT),
	   "the arena is mapped up to its limit, and no further");
}

/* A mapping of the program at an address to which the arena would grow stays as it is. */
static void grow_to_obstacle(void *config)
{
	char *p = mmap(ARENA + 2 * MB, 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	unsigned long pages = 0;
	void *kept[8];
	int i;

	if (p == MAP_FAILED || dune_enter(config))
		child_fails("mmap() or dune_enter() failed");
	*p = 42;
	for (i = 0; i < 8; i++)
		kept[i] = dune_page_alloc(1);
	while (dune_page_alloc(1))
		pages++;
	/* for the tables of what the child touches from here on */
	for (i = 0; i < 8; i++)
		dune_page_free(kept[i], 1);
	if (pages >= 2 * MB / 4096 || *p != 42)
		child_fails("the arena has %lu pages, and the program's byte is %d", pages, *p);
	_exit(0);
}

int main(void)
{
	struct dune_config config = {
		.size = sizeof(config), .arena = ARENA, .arena_size = MB, .arena_limit = LIMIT,
	};

	if (mmap(ARENA, MB, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != ARENA)
		bail("the arena's place is in use");
	test_config(config);
	is(in_child(grow_to_obstacle, &config, SECONDS).code, 0,
	   "a mapping in the way of the arena is not replaced");
	is(dune_enter(&config), 0, "dune_enter() with an arena that grows");
	ok(!mapped(ARENA + MB), "only the arena's first size is mapped at first");
	test_gigabytes();
	test_pages();
	return done();
}
