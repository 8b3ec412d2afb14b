// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * An arena of several gigabytes: page tables come from any of them. Fails when a page table
 * lacks the entry of a gigabyte of the arena, since a page fault in the guest then faults
 * before its entry is made, without end.
 */
#include <sys/mman.h>
#include "rings.h"
#include "tap.h"
#include "x86.h"

#define ARENA	((char *)0x200010000000UL)
#define SIZE	(4 * GB)
#define FAR	0x300000000000UL

static void *map(void *at, uint64_t size)
{
	return mmap(at, size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}

int main(void)
{
	struct dune_config config = {
		.size = sizeof(config), .arena = ARENA, .arena_size = SIZE,
	};
	uint64_t before, size;
	char *far = (char *)FAR;
	struct dune_stats stats;

	if (map(ARENA, SIZE) != ARENA || map(far, PAGE) != far)
		bail("mmap: %m");
	must_enter(&config);
	ok(dune_page_alloc(GB / PAGE), "a gigabyte of the arena is given out");
	dune_stats(&stats);
	before = stats.table_bytes;
	*far = 1;
	is(*far, 1, "the first access to a far gigabyte");
	dune_stats(&stats);
	ok(stats.table_bytes > before, "its page tables come from the arena's second gigabyte");
	ok(dune_pt_entry(dune_pt_root(), (uint64_t)far, &size), "that gigabyte has an entry");
	return done();
}
