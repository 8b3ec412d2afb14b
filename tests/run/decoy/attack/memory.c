// SPDX-License-Identifier: MIT OR Apache-2.0
/* Memory policy, and pages that are moved between nodes. See attack.h. */
#define _GNU_SOURCE
#include "attack.h"

#include <sys/mman.h>
#include <sys/syscall.h>

/*
 * move_pages() stores the status of a page that it cannot move at once, and of
 * those before it only when they were moved: the first store may be as far up
 * as there are pages. Wide enough to jump over the stub, this takes memory.
 */
void wide_move(void)
{
	u64 count = SUPER_SIZE / 4 + 4096, i;
	void **pages = mmap(NULL, 8 * count, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int *nodes = mmap(NULL, 4 * count, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *memory = mmap(NULL, PAGE * count, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (pages == MAP_FAILED || nodes == MAP_FAILED || memory == MAP_FAILED)
		return;
	madvise(memory, PAGE * count, MADV_NOHUGEPAGE);
	for (i = 0; i < count; i++) {
		nodes[i] = 1;
		pages[i] = memory + PAGE * i;
		if (i < count - 64)
			memory[PAGE * i] = 1;
	}
	/* the last ones are not there: an error to store */
	call(SYS_move_pages, 0, count, (u64)pages, (u64)nodes, super_base - PAGE, 2);
}

void do_numa(void)
{
	u64 count = one_in(3) ? below(300000) : below(64), i;
	u64 *pages = take(64 * 8);
	int *nodes = take(64 * 4);

	for (i = 0; i < 64; i++) {
		pages[i] = one_in(4) ? in_decoy() :
			   one_in(3) ? below_range() : (u64)pool + PAGE * below(200);
		nodes[i] = one_in(8) ? (int)number() : (int)below(2);
	}
	if (count > 64)
		pages = (u64 *)(LOW_BASE + 8 * below(1000));
	call(SYS_move_pages, 0, count, (u64)pages, one_in(3) ? 0 : (u64)nodes,
	     one_in(2) ? below_range() : pointer(), one_in(2) ? 2 : below(8));
	call(SYS_mbind, one_in(2) ? (u64)pool : below_range(), number(), below(7), pointer(),
	     below(70), below(8));
	call(SYS_get_mempolicy, pointer(), pointer(), below(70), one_in(2) ? in_decoy() : pointer(),
	     below(8), 0);
	call(SYS_migrate_pages, 0, below(70), pointer(), pointer(), 0, 0);
}
