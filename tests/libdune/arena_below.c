// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * libdune's own arena in a process whose mappings are below the program: with the layout
 * ADDR_COMPAT_LAYOUT mmap() starts at a third of the addresses. Fails when the arena grows
 * out of a supervisor range that begins with the program, where ring 3 could write page
 * tables.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/personality.h>
#include <unistd.h>
#include "rings.h"
#include "tap.h"
#include "x86.h"

#define END	(1UL << 47)
#define PAGES	512		/* more than the arena has before it grows */

static char data;

int main(int argc, char **argv)
{
	uint64_t base = (uint64_t)&data & ~(GB - 1);
	struct dune_config config = {
		.size = sizeof(config), .super_base = base, .super_size = END - base,
	};
	int i, outside = 0, for_ring3 = 0;
	char *p, *mapped;

	if (!(personality(0xffffffff) & ADDR_COMPAT_LAYOUT)) {
		personality(ADDR_COMPAT_LAYOUT);
		execv("/proc/self/exe", argv);
		bail("execv: %m");
	}
	mapped = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ok((uint64_t)mapped < base, "the kernel maps memory below the program (%p)", mapped);
	must_enter(&config);
	for (i = 0; i < PAGES; i++) {
		p = dune_page_alloc(1);
		if (!p)
			break;
		outside += (uint64_t)p < base;
		for_ring3 += !!(*dune_pt_entry(dune_pt_root(), (uint64_t)p, NULL) & DUNE_PTE_U);
	}
	is(i, PAGES, "the arena grows");
	is(outside, 0, "no page of the arena is outside of the supervisor range");
	is(for_ring3, 0, "ring 3 can reach no page of the arena");
	return done();
}
