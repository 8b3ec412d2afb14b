// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Memory of the process at an address of ring 0, such as the scratch (place.h). This is above
 * pages.c: it needs the guest-physical addresses of the process (memory/granule.c), whose tables
 * are in pages that pages.c adds.
 */
#include "place.h"

void dune_private_map(u64 to, u64 from, u64 size)
{
	u64 at;

	for (at = 0; at < size; at += PAGE)
		dune_private_map_page(to + at, to_gpa(from + at));
}
