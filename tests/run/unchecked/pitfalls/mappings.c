// SPDX-License-Identifier: MIT OR Apache-2.0
/* Other mappings. See pitfalls.h. */
#define _GNU_SOURCE
#include "pitfalls.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static void map_over(unsigned int i)
{
	make_sled(target(i) & ~(PAGE - 1), PAGE * (1 + rand() % 4), MAP_FIXED);
}

static void map_over_all(unsigned int i)
{
	make_sled(super_base - PAGE * i, SUPER_SIZE + 2 * PAGE * i, MAP_FIXED);
}

static void unmap(unsigned int i)
{
	RAW(SYS_munmap, target(i), PAGE, 0);
	make_sled(target(i) & ~(PAGE - 1), PAGE, MAP_FIXED);
}

static void protect(unsigned int i)
{
	static const int rights[] = { 0, 1, 2, 3, 4, 5, 6, 7, 0x01000003, 0x02000003 };

	RAW(SYS_mprotect, target(i), PAGE << i % 3, rights[rand() % COUNT(rights)]);
	RAW6(SYS_pkey_mprotect, target(i), PAGE, rights[rand() % COUNT(rights)],
	     RAW(SYS_pkey_alloc, 0, rand() % 4, 0), 0, 0);
}

static void move(unsigned int i)
{
	u64 to = (u64)sled + PAGE * (rand() % 16);

	if (i & 1)
		RAW6(SYS_mremap, target(i / 2), PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED |
		     (rand() & 1 ? MREMAP_DONTUNMAP : 0), to, 0);
	else
		RAW6(SYS_mremap, sled, PAGE << rand() % 3, PAGE << rand() % 3,
		     MREMAP_MAYMOVE | MREMAP_FIXED | (rand() & 1 ? MREMAP_DONTUNMAP : 0),
		     target(i / 2) & ~(PAGE - 1), 0);
	/* A second view of the stub's and the window's pages: an old size of 0 duplicates. */
	RAW6(SYS_mremap, target(i / 2), 0, STUB_SIZE, MREMAP_MAYMOVE, 0, 0);
	RAW6(SYS_mremap, super_base, STUB_SIZE, STUB_SIZE + PAGE, MREMAP_MAYMOVE, 0, 0);
	RAW6(SYS_remap_file_pages, target(i / 2), PAGE, 0, rand() % 8, 0, 0);
}

/* But for those by which root declares a page defective. */
static void advise(unsigned int i)
{
	RAW(SYS_madvise, target(i / 30) & ~(PAGE - 1), PAGE << rand() % 4, i % 30);
	if (i % 30 == 4)
		work(1);
}

static void attach(unsigned int i)
{
	int id = shmget(IPC_PRIVATE, SUPER_SIZE, IPC_CREAT | 0600);
	char *p = shmat(id, NULL, 0);

	fill_sled(p, SUPER_SIZE);
	RAW(SYS_shmat, id, target(i), SHM_REMAP | (rand() & 1 ? SHM_EXEC : 0) |
	    (rand() & 1 ? SHM_RDONLY : 0));
	shmctl(id, IPC_RMID, NULL);
}

static void others(unsigned int i)
{
	u64 nodes = 1;

	RAW6(SYS_mlock2, target(i), PAGE, rand() & 1, 0, 0, 0);
	RAW6(SYS_mbind, target(i), PAGE, rand() % 5, &nodes, 64, rand() % 8);
	RAW6(SYS_move_pages, 0, 1, (u64[]){ target(i) }, (int[]){ 0 }, buffer, 2);
	RAW6(SYS_msync, target(i), PAGE, rand() % 8, 0, 0, 0);
	RAW6(462 /* mseal */, target(i), PAGE, 0, 0, 0, 0);
	RAW6(SYS_process_madvise, RAW(SYS_pidfd_open, getpid(), 0, 0),
	     (&(struct iovec){ (void *)target(i), PAGE }), 1, rand() % 26, 0, 0);
	RAW6(453 /* map_shadow_stack */, target(i), PAGE, 0, 0, 0, 0);
	RAW(SYS_mincore, target(i), PAGE, target(i + 1));
}

void row_map_over(void) { try(map_over, TARGETS); }
void row_map_over_all(void) { try(map_over_all, 3); }
void row_unmap(void) { try(unmap, TARGETS); }
void row_mprotect(void) { try(protect, 2 * TARGETS); }
void row_mremap(void) { try(move, 2 * TARGETS); }
void row_madvise(void) { try(advise, 30 * 4); }
void row_shmat(void) { try(attach, 6); }
void row_other_mapping_calls(void) { try(others, TARGETS); }

void row_unmap_everything(void)
{
	RAW(SYS_munmap, 0, 1UL << 46, 0);
	RAW(SYS_munmap, (u64)sled & ~((1UL << 39) - 1), 1UL << 39, 0);
}
