// SPDX-License-Identifier: MIT OR Apache-2.0
/* The memory of the library that each page table has. */
#include "memory.h"

/*
 * The linker's names of the ends of the image's headers and code, of which the library's code is
 * a part, and of the section of __ro_after_start.
 */
#define HIDDEN __attribute__((visibility("hidden")))
extern const char __executable_start[] HIDDEN, _etext[] HIDDEN;
extern const char __start_dune_ro_after_start[] HIDDEN, __stop_dune_ro_after_start[] HIDDEN;

/*
 * Adds the arena to @root. Page tables come from the arena, and a fault on the way into a
 * page fault would end the program, so each page table that is loaded has the arena.
 * Returns 0 or -ENOMEM.
 */
static int touch_arena(dune_pte *root)
{
	const struct dune_chunk *chunk = dune_process.arena.chunk;
	u32 i;

	for (i = 0; i < 2; i++) {
		if (dune_pt_touch(root, (void *)chunk[i].base, chunk[i].size))
			return -ENOMEM;
	}
	if (chunk[0].base - (u64)dune_first_chunk < sizeof(dune_first_chunk))
		return dune_pt_touch(root, dune_first_chunk, sizeof(dune_first_chunk));
	return 0;
}

/*
 * Adds both tables of granule.c to @root, as they are used on the way into a page fault and must
 * not fault there. Returns 0 or -ENOMEM.
 */
static int touch_granules(dune_pte *root)
{
	if (!dune_process.granules)
		return 0;
	if (dune_pt_touch(root, dune_granule_of, sizeof(dune_granule_of)) ||
	    dune_pt_touch(root, dune_gigabyte_of, sizeof(dune_gigabyte_of)))
		return -ENOMEM;
	return 0;
}

/*
 * Adds to @root all memory that the entry of a page fault uses, since it must not fault
 * there. A border of two gigabytes may lie anywhere in the program. Returns 0 or -ENOMEM.
 */
int dune_pt_touch_core(dune_pte *root)
{
	if (dune_pt_touch(root, __executable_start, _etext - __executable_start) ||
	    dune_pt_touch(root, __start_dune_ro_after_start,
			  __stop_dune_ro_after_start - __start_dune_ro_after_start) ||
	    dune_pt_touch(root, &dune_process, sizeof(dune_process)) ||
	    touch_arena(root) || touch_granules(root))
		return -ENOMEM;
	return 0;
}
