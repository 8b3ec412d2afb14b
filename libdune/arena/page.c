// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The page allocator of a program in ring 0: pages of the arena. Page tables (table.c), the
 * blocks of threads (host/thread.c) and the pages that the program asks for come from
 * here. (private/pages.c is the same for a runtime in private memory.)
 *
 * The arena is the memory that the caller of dune_enter() gave, which may grow in
 * its place. Without that it is a small piece of the program's own .bss, which
 * costs no system call, and when that is used up a large mapping. Pages that are
 * given back go to a list, and are used again for the same number of pages.
 */
#include "linux.h"
#include "memory.h"
#include "syscall.h"

#define ARENA_SIZE	(256ULL << 20)
/* Two addresses in the first page table, which may lack both upper levels, need this. */
#define RESERVE_PAGES	4
#define RESERVE		(RESERVE_PAGES * PAGE)

struct dune_piece {
	struct dune_piece *next;
	u64 count;
};

/*
 * Too small to hold an aligned piece of 2 MB, so that the kernel does not clear a
 * huge page for it.
 */
u8 dune_first_chunk[FIRST_CHUNK];

static struct dune_arena *const arena = &dune_process.arena;
static struct dune_lock *const arena_lock = &dune_process.locks[LOCK_ARENA];
static struct dune_lock *const growing_lock = &dune_process.locks[LOCK_GROWING];

/* Sets @c to the whole pages of [base, base + size) from the first multiple of BLOCK_SIZE on. */
static void set_chunk(struct dune_chunk *c, u64 base, u64 size)
{
	u64 start = (base + BLOCK_SIZE - 1) & ~(BLOCK_SIZE - 1ULL);

	c->base = start;
	c->used = 0;
	barrier();
	c->size = (size - (start - base)) & ~(PAGE - 1);
}

/* Called once, before all other functions of this file. */
void dune_page_init(const struct dune_config *cfg)
{
	u64 base = (u64)cfg->arena, size = cfg->arena_size;

	if (!base) {
		set_chunk(&arena->chunk[0], (u64)dune_first_chunk, FIRST_CHUNK - RESERVE);
		return;
	}
	arena->limit = cfg->arena_limit;
	sys3(__NR_madvise, base, size, MADV_NOHUGEPAGE);
	set_chunk(&arena->chunk[0], base, size);
	arena->complete = 1;
}

/* Returns the bytes that are given out now. */
u64 dune_page_bytes(void)
{
	return READ_ONCE(arena->bytes);
}

/*
 * Maps @size bytes. @fixed: MAP_FIXED or MAP_FIXED_NOREPLACE for the address @at, or 0 for any.
 * Returns the address or a negative errno number.
 */
static long map(u64 at, u64 size, u64 fixed)
{
	return sys_any(__NR_mmap, at, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1);
}

/*
 * Maps one more step of the caller's arena. It grows by small steps because its
 * size counts against the limits of the process (RLIMIT_DATA, RLIMIT_AS). The
 * whole limit is in one gigabyte, which is in the page table already.
 *
 * A vfork child that was killed here may have mapped the step already: placing is then
 * still the step's address. The step is mapped again, and replaces whatever is there. To use
 * what is there would be wrong: it may be a mapping of the kernel's (the vDSO) that covers a
 * part of the step, and the rest would be a hole in the arena. LOCK_GROWING is held.
 */
static void grow_in_place(void)
{
	struct dune_chunk *c = &arena->chunk[0];
	u64 at = c->base + c->size;
	u64 fixed = READ_ONCE(arena->placing) == at ? MAP_FIXED : MAP_FIXED_NOREPLACE;

	dune_assert_held(growing_lock);
	if (c->size >= arena->limit)
		return;
	WRITE_ONCE(arena->placing, at);
	barrier();
	if (map(at, ARENA_STEP, fixed) == (long)at) {
		sys_any(__NR_madvise, at, ARENA_STEP, MADV_NOHUGEPAGE, 0, 0);
		WRITE_ONCE(c->size, c->size + ARENA_STEP);
	}
	barrier();
	WRITE_ONCE(arena->placing, 0);
}

/* Takes the RESERVE_PAGES pages after the first chunk. Only map_chunk() calls this, once. */
static void *take_reserve(void)
{
	u64 flags = dune_lock(arena_lock);

	arena->bytes += RESERVE;
	dune_unlock(arena_lock, flags);
	return (void *)(arena->chunk[0].base + arena->chunk[0].size);
}

/*
 * Maps @size bytes for the second chunk, in the supervisor range if there is one. The range
 * of a process without an arena of its own ends at 2^47 (config_error() in host/enter.c), and
 * the kernel places mappings near that end. With its other layout (ADDR_COMPAT_LAYOUT) it
 * starts at a third of the addresses, which may be below the range; the middle of the range is
 * then free. Returns the address or a negative errno number.
 */
static long map_in_range(u64 size)
{
	const struct dune_process *p = &dune_process;
	long at = map(0, size, 0);

	if (is_error(at) || !p->super_size || (u64)at >= p->super_base)
		return at;
	sys_any(__NR_munmap, at, size, 0, 0, 0);
	return map((p->super_base + p->super_size / 2) & ~(GB - 1), size, MAP_FIXED_NOREPLACE);
}

/*
 * Maps the second chunk. The page tables for it come from the reserve. Only the first page
 * table is loaded anywhere (dune_page_complete()), so no other needs the chunk's entries.
 */
static void map_chunk(void)
{
	u64 size = ARENA_SIZE;
	long at;

	/* RLIMIT_AS or RLIMIT_DATA may allow less. */
	at = map_in_range(size);
	while (is_error(at) && size > ARENA_STEP) {
		size /= 4;
		at = map_in_range(size);
	}
	if (is_error(at))
		return;
	/* Single pages are enough, and the kernel would have to clear a huge one. */
	sys_any(__NR_madvise, at, size, MADV_NOHUGEPAGE, 0, 0);
	if (dune_pt_touch_reserved(at, at + size - 1, take_reserve(), RESERVE_PAGES))
		sys_any(__NR_munmap, at, size, 0, 0, 0);
	else
		set_chunk(&arena->chunk[1], at, size);
}

/* Adds the second and last chunk, unless that was tried before. LOCK_GROWING is held. */
static void add_chunk(void)
{
	dune_assert_held(growing_lock);
	if (arena->complete)
		return;
	map_chunk();
	barrier();
	WRITE_ONCE(arena->complete, 1);
}

/*
 * Adds the second chunk, whether the first one has pages left or not. The calling thread is
 * about to do one of two things, after which map_chunk() could not run any more. It loads
 * another page table than the first. Or, in the host half, it makes a child that shares
 * memory: that could be killed in map_chunk(), which nobody can then continue.
 */
void dune_page_complete(void)
{
	u64 flags;

	if (likely(READ_ONCE(arena->complete)))
		return;
	flags = dune_lock(growing_lock);
	add_chunk();
	dune_unlock(growing_lock, flags);
}

static u64 arena_size(void)
{
	return READ_ONCE(arena->chunk[0].size) + READ_ONCE(arena->chunk[1].size);
}

/*
 * Returns whether the arena has grown beyond @size, at which it had no page left.
 * One thread makes it grow, and other threads that need a page wait for that, since
 * they would get none otherwise.
 */
static bool grow(u64 size)
{
	u64 flags = dune_lock(growing_lock);

	if (arena_size() == size) {
		if (arena->limit)
			grow_in_place();
		else
			add_chunk();
	}
	dune_unlock(growing_lock, flags);
	return arena_size() != size;
}

/* Takes @count pages that were given back. Returns NULL if there are none. LOCK_ARENA is held. */
static struct dune_piece *take_piece(u64 count)
{
	struct dune_piece **link, *p;

	dune_assert_held(arena_lock);
	for (link = &arena->pieces; (p = *link); link = &p->next) {
		if (p->count == count) {
			*link = p->next;
			return p;
		}
	}
	return NULL;
}

/*
 * Takes @len bytes of @c that were never given out. Returns NULL if it has too few left.
 * LOCK_ARENA is held.
 */
static void *take_new(struct dune_chunk *c, u64 len)
{
	/* A thread's block is aligned to its size; all others to a page. */
	u64 align = len == BLOCK_SIZE ? BLOCK_SIZE : PAGE;
	u64 start = (c->used + align - 1) & ~(align - 1);

	dune_assert_held(arena_lock);
	if (len > c->size || start > c->size - len)
		return NULL;
	c->used = start + len;
	return (void *)(c->base + start);
}

/*
 * Returns @count pages in one piece, or NULL if the arena is full. They are zero, or
 * *@dirty is set and they were used before.
 */
void *dune_page_take(unsigned int count, bool *dirty)
{
	u64 len = count * PAGE;
	u64 flags, size;
	void *page;

	do {
		flags = dune_lock(arena_lock);
		size = arena_size();
		page = take_piece(count);
		*dirty = page;
		if (!page)
			page = take_new(&arena->chunk[0], len);
		if (!page)
			page = take_new(&arena->chunk[1], len);
		if (page)
			arena->bytes += len;
		dune_unlock(arena_lock, flags);
	} while (!page && len <= ARENA_SIZE && grow(size));
	return page;
}

void *dune_page_alloc(unsigned int count)
{
	void *page;
	bool dirty;

	/* Before dune_enter() there is no arena, nor a page table for it. */
	if (!count || !dune_process.root)
		return NULL;
	page = dune_page_take(count, &dirty);
	if (page && dirty)
		memset(page, 0, count * PAGE);
	return page;
}

/* Puts @count pages at @p into the list of pieces. LOCK_ARENA is held. */
static void give_back(struct dune_piece *p, unsigned int count)
{
	dune_assert_held(arena_lock);
	p->count = count;
	p->next = arena->pieces;
	barrier();		/* the list is valid at each instruction (lock.h) */
	arena->pieces = p;
	arena->bytes -= count * PAGE;
}

void dune_page_free(void *page, unsigned int count)
{
	u64 flags;

	if (!page || !count)
		return;
	flags = dune_lock(arena_lock);
	give_back(page, count);
	dune_unlock(arena_lock, flags);
}

/* Frees the pages that have the calling thread's stack, and ends the thread. */
void dune_page_free_and_exit(void *page, unsigned int count, long status)
{
	dune_lock(arena_lock);
	give_back(page, count);
	dune_unlock_and_exit(arena_lock, status);
}
