// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The page allocator: pages of the arena. Page tables (table.c), the blocks of
 * threads (host/thread.c) and the pages that the program asks for come from here.
 *
 * The arena is the memory that the caller of dune_enter() gave, which may grow in
 * its place. Without that it is a small piece of the program's own .bss, which
 * costs no system call, and when that is used up a large mapping. Pages that are
 * given back go to a list, and are used again for the same number of pages.
 */
#include "memory.h"

#define ARENA_SIZE	(256ULL << 20)
/* Two addresses in two page tables, each of which may lack both upper levels, need this. */
#define RESERVE_PAGES	8
#define RESERVE		(RESERVE_PAGES * PAGE)

struct dune_piece {
	struct dune_piece *next;
	u64 count;
};

/*
 * Too small to hold an aligned piece of 2 MB, so that the kernel does not clear a
 * huge page for it.
 */
static u8 first_chunk[5 * BLOCK_SIZE];

static struct dune_arena *const arena = &dune_process.arena;

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
		set_chunk(&arena->chunk[0], (u64)first_chunk, sizeof(first_chunk) - RESERVE);
		return;
	}
	arena->limit = cfg->arena_limit;
	sys3(__NR_madvise, base, size, MADV_NOHUGEPAGE);
	set_chunk(&arena->chunk[0], base, size);
	arena->chunks = 2;		/* there will be no other chunk */
}

unsigned long dune_arena_end(void)
{
	return arena->chunk[0].base + arena->chunk[0].size;
}

/* Returns whether @p is in the arena, in a page that is given out or not. */
bool dune_in_arena(const void *p)
{
	u64 at = (u64)p;

	return at - arena->chunk[0].base < arena->chunk[0].size ||
	       at - arena->chunk[1].base < arena->chunk[1].size;
}

/* Returns the bytes that are given out now. */
u64 dune_page_bytes(void)
{
	return arena->bytes;
}

static long arena_call(long nr, long a0, long a1, long a2, long a3, long a4)
{
	if (dune_active())
		return dune_hypercall(nr, a0, a1, a2, a3, a4, 0);
	return sys6(nr, a0, a1, a2, a3, a4, 0);
}

/*
 * Map @size bytes at @at, where nothing may be mapped yet, or anywhere if @at is 0.
 * Returns the address or a negative errno number.
 */
static long map(u64 at, u64 size)
{
	u64 fixed = at ? MAP_FIXED_NOREPLACE : 0;

	return arena_call(__NR_mmap, at, size, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1);
}

/*
 * Page tables come from the arena, and a fault on the way into a page fault would
 * end the program: so the arena is always in the page table that is loaded.
 */
int dune_page_touch(dune_pte *root)
{
	u32 i;

	for (i = 0; i < 2; i++) {
		struct dune_chunk *c = &arena->chunk[i];

		if (!c->size)
			continue;
		if (dune_pt_touch(root, c->base) ||
		    dune_pt_touch(root, c->base + c->size - 1))
			return -ENOMEM;
	}
	if (arena->chunk[0].base - (u64)first_chunk < sizeof(first_chunk))
		return dune_pt_touch(root, (u64)first_chunk + sizeof(first_chunk) - 1);
	return 0;
}

/*
 * Map one more step of the caller's arena. It grows by small steps because its
 * size counts against the limits of the process (RLIMIT_DATA, RLIMIT_AS). The
 * whole limit is in one gigabyte, which is in the page table already.
 */
static void grow_in_place(void)
{
	struct dune_chunk *c = &arena->chunk[0];
	u64 at = c->base + c->size;

	if (c->size >= arena->limit || map(at, ARENA_STEP) != (long)at)
		return;
	arena_call(__NR_madvise, at, ARENA_STEP, MADV_NOHUGEPAGE, 0, 0);
	WRITE_ONCE(c->size, c->size + ARENA_STEP);
}

/* The pages after the first chunk, which only add_chunk() uses. */
static void *take_reserve(void)
{
	u64 flags = dune_lock(&arena->lock);

	arena->bytes += RESERVE;
	dune_unlock(&arena->lock, flags);
	return (void *)(arena->chunk[0].base + arena->chunk[0].size);
}

/* The second and last chunk. Its own tables come from the reserve. */
static void add_chunk(void)
{
	u64 size = ARENA_SIZE;
	long at;

	if (arena->chunks == 2)
		return;
	arena->chunks = 2;
	/* RLIMIT_AS or RLIMIT_DATA may allow less. */
	for (at = -1; is_error(at) && size >= ARENA_STEP; size /= 4)
		at = map(0, size);
	if (is_error(at))
		return;
	size *= 4;
	/* Single pages are enough, and the kernel would have to clear a huge one. */
	arena_call(__NR_madvise, at, size, MADV_NOHUGEPAGE, 0, 0);
	if (dune_pt_touch_reserved(at, at + size - 1, take_reserve(), RESERVE_PAGES))
		arena_call(__NR_munmap, at, size, 0, 0, 0);
	else
		set_chunk(&arena->chunk[1], at, size);
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
	u64 flags = dune_lock(&arena->growing);

	if (arena_size() == size) {
		if (arena->limit)
			grow_in_place();
		else
			add_chunk();
	}
	dune_unlock(&arena->growing, flags);
	return arena_size() != size;
}

static struct dune_piece *take_piece(u64 count)
{
	struct dune_piece **link, *p;

	for (link = &arena->pieces; (p = *link); link = &p->next) {
		if (p->count == count) {
			*link = p->next;
			return p;
		}
	}
	return NULL;
}

static void *take_new(struct dune_chunk *c, u64 len)
{
	/* A thread's block is aligned to its size; all others to a page. */
	u64 align = len == BLOCK_SIZE ? BLOCK_SIZE : PAGE;
	u64 start = (c->used + align - 1) & ~(align - 1);

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
		flags = dune_lock(&arena->lock);
		size = arena_size();
		page = take_piece(count);
		*dirty = page;
		if (!page)
			page = take_new(&arena->chunk[0], len);
		if (!page)
			page = take_new(&arena->chunk[1], len);
		if (page)
			arena->bytes += len;
		dune_unlock(&arena->lock, flags);
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

void dune_page_free(void *page, unsigned int count)
{
	struct dune_piece *p = page;
	u64 flags;

	if (!page || !count)
		return;
	flags = dune_lock(&arena->lock);
	p->count = count;
	p->next = arena->pieces;
	arena->pieces = p;
	arena->bytes -= count * PAGE;
	dune_unlock(&arena->lock, flags);
}
