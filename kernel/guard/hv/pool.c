// SPDX-License-Identifier: GPL-2.0-only
/* The pages of the block that the loader has left. */
#include <linux/types.h>

#include "guard/hv/hv.h"

#define MOST_PAGES	1024	/* of the largest block */

static bool taken[MOST_PAGES];
static u32 taken_count;
/* Of a page that is taken until they have flushed: a bit for each CPU. */
static u64 awaited[MOST_PAGES];

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
		first = hv_config.pool + at * HV_PAGE;
		for (run = 0; run < pages; run++)
			hv_clear_page(first + run * HV_PAGE);
		return first;
	}
	return NULL;
}

bool hv_pool_has(const void *page)
{
	return (u64)page - (u64)hv_config.pool < hv_config.pool_pages * HV_PAGE;
}

/* The index of the first of some pages. */
static u64 index_of(const void *first, u32 pages)
{
	u64 at = (first - hv_config.pool) / HV_PAGE;

	if (at >= hv_config.pool_pages || at + pages > hv_config.pool_pages)
		hv_reset();
	return at;
}

void hv_pool_give(void *first, u32 pages)
{
	u64 at = index_of(first, pages);

	taken_count -= pages;
	while (pages--)
		taken[at++] = false;
}

void hv_pool_give_after(void *page, u64 cpus)
{
	awaited[index_of(page, 1)] = cpus;
	if (!cpus)
		hv_pool_give(page, 1);
}

void hv_pool_flushed(u64 cpu)
{
	u64 at;

	for (at = 0; at < hv_config.pool_pages; at++) {
		if (!(awaited[at] & cpu))
			continue;
		awaited[at] &= ~cpu;
		if (!awaited[at])
			hv_pool_give(hv_config.pool + at * HV_PAGE, 1);
	}
}
