// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The areas of the program's address space: whether their places are random, where the
 * heap begins, and what /proc shows of them.
 */
#include "areas.h"
#include "page.h"
#include "super_range.h"
#include "sys.h"

#include <asm/unistd.h>
#include <linux/prctl.h>

#define BRK_RANDOM_PAGES	(0x02000000 / PAGE_BYTES)

/*
 * If addresses are random, the kernel has put dune-run's own heap somewhere above its
 * bss, and otherwise right after it. This test costs nothing, needs no /proc, and
 * accounts for the boot options and the personality.
 */
bool addresses_are_random(void)
{
	static int known = -1;

	if (known < 0)
		known = SYS1(__NR_brk, 0) != (long)PAGE_UP((u64)_end);
	return known;
}

static u64 heap_start(const struct image *image)
{
	u64 start = PAGE_UP(image->brk);
	u64 pages = 0;

	if (!addresses_are_random())
		return start;
	/* A static PIE, or a loader that is executed itself, lies among the mappings. */
	if (image->is_dynamic && !image->has_interpreter)
		start = PAGE_DOWN(USER_END / 3 * 2);
	SYS3(__NR_getrandom, &pages, sizeof(pages), 0);
	return start + pages % BRK_RANDOM_PAGES * PAGE_BYTES;
}

long areas_set(const struct initial_stack *s, const struct image *image)
{
	struct prctl_mm_map map = {
		.start_code = image->start_code,
		.end_code = image->end_code,
		.start_data = image->start_data,
		.end_data = image->end_data,
		.start_stack = (u64)s->argc,
		.auxv = (void *)s->auxv,
		.auxv_size = (u64)s->auxv_end - (u64)s->auxv,
		.arg_start = s->arg_start,
		.arg_end = s->arg_end,
		.env_start = s->env_start,
		.env_end = s->env_end,
		.exe_fd = -1,
	};

	map.start_brk = heap_start(image);
	map.brk = map.start_brk;
	return SYS5(__NR_prctl, PR_SET_MM, PR_SET_MM_MAP, &map, sizeof(map), 0);
}
