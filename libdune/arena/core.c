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
 * Adds to @root all memory that the entry of a page fault uses, since it must not fault
 * there. A border of two gigabytes may lie anywhere in the program. Returns 0 or -ENOMEM.
 */
int dune_pt_touch_core(dune_pte *root)
{
	if (dune_pt_touch(root, __executable_start, _etext - __executable_start) ||
	    dune_pt_touch(root, __start_dune_ro_after_start,
			  __stop_dune_ro_after_start - __start_dune_ro_after_start) ||
	    dune_pt_touch(root, &dune_process, sizeof(dune_process)) ||
	    dune_page_touch(root) || dune_granule_touch(root))
		return -ENOMEM;
	return 0;
}
