// SPDX-License-Identifier: GPL-2.0-only
/* The pages of the block that the loader has left. */
#include <linux/types.h>

#include "guard/hv/hv.h"

#define MOST_PAGES	1024	/* of the largest block */

static bool taken[MOST_PAGES];
static u32 taken_count;

u32 hv_pool_left(void)
{
	return hv_config.pool_pages - taken_count;
}

void *hv_pool_take(u32 pages)
{
	u32 at, run;
	void *first;

	for (at = 0; at + pages <= hv_config.pool_pages; at += run + 1) {
		for (run = 0; run < pages && !taken[at + run]; run++)
			;
		if (run < pages)
			continue;
		for (run = 0; run < pages; run++)
			taken[at + run] = true;
		taken_count += pages;
		first = hv_config.pool + at * 4096ULL;
		for (run = 0; run < pages; run++)
			hv_clear_page(first + run * 4096ULL);
		return first;
	}
	return NULL;
}

void hv_pool_give(void *first, u32 pages)
{
	u64 at = (first - hv_config.pool) / 4096;

	if (at >= hv_config.pool_pages || at + pages > hv_config.pool_pages)
		hv_reset();
	taken_count -= pages;
	while (pages--)
		taken[at++] = false;
}
