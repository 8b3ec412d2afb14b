// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The areas of the program's address space: whether their places are random, where the
 * heap begins, and what /proc shows of them.
 */
#include "areas.h"
#include "copies.h"
#include "message.h"
#include "page.h"
#include "sys.h"
#include "text.h"

#include <asm/unistd.h>
#include <linux/auxvec.h>
#include <linux/dune.h>
#include <linux/prctl.h>

#define BRK_RANDOM_PAGES	(0x02000000 / PAGE_BYTES)

/*
 * PR_SET_MM takes no address below this one, which is the least for LSMs and
 * vm.mmap_min_addr's default. The kernel itself puts an image of root's there.
 */
#define MIN_ADDRESS		0x10000UL

static bool addresses_are_random, heap_is_random;

/*
 * The string of AT_EXECFN is the highest one on the stack. Unless the addresses are random, only
 * one word lies between it and the end of the user addresses. This test needs no /proc, and
 * accounts for the boot options, the sysctl and the personality.
 */
void areas_init(u64 name, bool heap)
{
	addresses_are_random = !name ||
		name + text_len((const char *)name) + 1 != USER_END - sizeof(u64);
	heap_is_random = heap;
}

bool areas_are_random(void)
{
	return addresses_are_random;
}

void random_bytes(void *to, u64 size)
{
	u64 mark = dune_copies_mark(), room = result_room(size);
	long ret = take_result(to, room, size, SYS3(__NR_getrandom, room, size, 0));

	if (ret != (long)size)
		die(126, "cannot get random bytes", NULL, ret < 0 ? ret : 0, "permit getrandom()");
	dune_copies_release(mark);
}

u64 random_offset(u64 pages)
{
	u64 random = 0;

	if (addresses_are_random)
		random_bytes(&random, sizeof(random));
	return random % pages * PAGE_BYTES;
}

static u64 at_least(u64 address, u64 least)
{
	return address < least ? least : address;
}

static u64 heap_start(const struct image *image)
{
	u64 start = at_least(PAGE_UP(image->brk), MIN_ADDRESS);

	/* A static PIE, or a loader that is executed itself, lies among the mappings. */
	if (image->is_dynamic && !image->has_interpreter)
		start = DYN_BASE;
	return start + (heap_is_random ? random_offset(BRK_RANDOM_PAGES) : 0);
}

long areas_set(const struct initial_stack *s, const struct image *image)
{
	struct prctl_mm_map map = {
		.start_code = at_least(image->start_code, MIN_ADDRESS),
		.start_data = at_least(image->start_data, MIN_ADDRESS),
		.end_data = at_least(image->end_data, MIN_ADDRESS),
		.start_stack = (u64)s->argc,
		.auxv = (void *)s->auxv,
		.auxv_size = (u64)s->auxv_end - (u64)s->auxv,
		.arg_start = s->arg_start,
		.arg_end = s->arg_end,
		.env_start = s->env_start,
		.env_end = s->env_end,
		.exe_fd = -1,
	};
	u64 mark = dune_copies_mark();
	long err;

	map.end_code = at_least(image->end_code, map.start_code + 1);
	map.start_brk = heap_start(image);
	map.brk = map.start_brk;
	err = SYS5(DUNE_HOSTCALL | __NR_prctl, PR_SET_MM, PR_SET_MM_MAP, shown(&map, sizeof(map)),
		   sizeof(map), 0);
	dune_copies_release(mark);
	return err;
}
