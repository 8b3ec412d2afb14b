// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The page allocator: pages of the arena, which is one mapping of the process
 * taken at dune_enter(). Page tables (pgtable.c) and the blocks of threads
 * (thread.c) come from here, and what the program asks for.
 *
 * The arena is used from its start on; what is given back goes to a list and
 * is used again for the same number of pages.
 */
#include "internal.h"

#define PAGE 4096

struct piece {
	struct piece *next;
	u64 count;
};

static struct dune_lock lock;	/* of all below */
static u64 base, size;
static u64 used;		/* bytes from base on that were ever given out */
static u64 bytes;		/* bytes given out now */
static struct piece *pieces;

/* Before anything else here, and once. */
int dune_page_init(void *arena, u64 arena_size)
{
	if (((u64)arena & (BLOCK_SIZE - 1)) || arena_size < 4 * BLOCK_SIZE)
		return -EINVAL;
	base = (u64)arena;
	size = arena_size;
	return 0;
}

int dune_in_arena(const void *p)
{
	return (u64)p - base < size;
}

u64 dune_page_bytes(void)
{
	return bytes;
}

static struct piece *take_piece(u64 count)
{
	struct piece **link, *p;

	for (link = &pieces; (p = *link); link = &p->next) {
		if (p->count == count) {
			*link = p->next;
			return p;
		}
	}
	return NULL;
}

void *dune_page_alloc(unsigned int count)
{
	u64 len = (u64)count * PAGE;
	/* A thread's block is aligned to its size; all others to a page. */
	u64 align = len == BLOCK_SIZE ? BLOCK_SIZE : PAGE;
	struct piece *p;
	void *page = NULL;
	u64 start, flags;

	if (!count)
		return NULL;
	flags = dune_lock(&lock);
	p = take_piece(count);
	start = (used + align - 1) & ~(align - 1);
	if (!p && start + len <= size && len <= size) {
		page = (void *)(base + start);
		used = start + len;
	}
	if (p || page)
		bytes += len;
	dune_unlock(&lock, flags);
	if (!p)
		return page;	/* never used: zero */
	return memset(p, 0, len);
}

void dune_page_free(void *page, unsigned int count)
{
	struct piece *p = page;
	u64 flags;

	if (!page || !count)
		return;
	flags = dune_lock(&lock);
	p->count = count;
	p->next = pieces;
	pieces = p;
	bytes -= (u64)count * PAGE;
	dune_unlock(&lock, flags);
}
