// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The page allocator of a runtime in private memory: pages that the module adds to it. Page tables
 * come from here, and the pages of the image's .bss, which are added when they are first used.
 *
 * Private memory only grows. Pages that are given back go to a list. Each page that is not sealed
 * is copied for each child, so few are kept in advance.
 */
#include <dune_runtime.h>
#include "linux.h"
#include "place.h"
#include "table.h"
#include "tlb.h"

/* How many pages are added at once. */
#define STEP	2

/* The linker's names of the part of the image whose pages are added when they are used. */
#define HIDDEN __attribute__((visibility("hidden")))
extern u8 dune_later_start[] HIDDEN, dune_later_end[] HIDDEN;

struct dune_piece {
	struct dune_piece *next;
};

static struct dune_own_pages *const own = &dune_process.own;
static struct dune_lock *const lock = &dune_process.locks[LOCK_ARENA];

/* Adds @count pages to private memory. Returns their guest-physical address or a negative errno. */
static long add(u64 count)
{
	return dune_hypercall(DUNE_ADD_PAGES, count, 0, 0, 0, 0, 0);
}

/* Returns whether @at is the address of a page of private memory, which is one gigabyte at most. */
static bool is_private(long at)
{
	return at - dune_process.private_gpa < GB && !(at & (PAGE - 1));
}

/* Takes a page that was given back, or NULL. LOCK_ARENA is held. */
static void *take_piece(void)
{
	struct dune_piece *p = own->pieces;

	dune_assert_held(lock);
	if (p)
		own->pieces = p->next;
	return p;
}

/*
 * Takes @count pages that were never given out, or NULL. LOCK_ARENA is held. Pages that are spare,
 * but too few, are lost: this does not happen, since a runtime takes single pages only.
 */
static void *take_new(u64 count)
{
	long at;

	dune_assert_held(lock);
	if (own->spare < count) {
		at = add(count > STEP ? count : STEP);
		if (!is_private(at))
			return NULL;
		own->next = at;
		barrier();
		own->spare = count > STEP ? count : STEP;
	}
	at = own->next;
	/* All pages that are spare have been added, at each instruction (lock.h). */
	own->spare -= count;
	barrier();
	own->next += count * PAGE;
	return table_at(at);
}

void *dune_page_take(unsigned int count, bool *dirty)
{
	u64 flags = dune_lock(lock);
	void *page = count == 1 ? take_piece() : NULL;

	*dirty = page;
	if (!page)
		page = take_new(count);
	if (page)
		own->bytes += count * PAGE;
	dune_unlock(lock, flags);
	return page;
}

void *dune_page_alloc(unsigned int count)
{
	bool dirty;
	void *page = count ? dune_page_take(count, &dirty) : NULL;

	if (page && dirty)
		memset(page, 0, count * PAGE);
	return page;
}

void dune_page_free(void *page, unsigned int count)
{
	struct dune_piece *p = page;
	u64 flags;

	if (!page)
		return;
	flags = dune_lock(lock);
	own->bytes -= count * PAGE;
	for (; count; count--, p = (void *)((u64)p + PAGE)) {
		p->next = own->pieces;
		barrier();		/* the list is valid at each instruction (lock.h) */
		own->pieces = p;
	}
	dune_unlock(lock, flags);
}

u64 dune_page_bytes(void)
{
	return READ_ONCE(own->bytes);
}

/* Returns the entry of the page around @va in the image. Its tables are there from the start. */
static dune_pte *image_entry(u64 va)
{
	dune_pte *table = dune_process.root;
	int level;

	for (level = PT_TOP; level; level--)
		table = table_at(table[level_index(va, level)] & DUNE_PTE_ADDR);
	return &table[level_index(va, 0)];
}

static void map_page(dune_pte *e, u64 gpa)
{
	WRITE_ONCE(*e, gpa | DUNE_PTE_P | DUNE_PTE_W | DUNE_PTE_A | DUNE_PTE_D | DUNE_PTE_NX);
}

void dune_private_map_page(u64 to, u64 gpa)
{
	map_page(image_entry(to), gpa);
}

bool dune_page_upper(u64 va)
{
	dune_pte *e;
	void *page;

	if (va - (u64)dune_later_start >= (u64)(dune_later_end - dune_later_start))
		return false;
	/*
	 * The block is the last of the image. A stack that grew too far would reach the block's
	 * queue of signals.
	 */
	if (va - ((u64)dune_later_end - BLOCK_SIZE + RING0_STACK_BOTTOM) < RING0_STACK_GUARD)
		return false;
	e = image_entry(va);
	if (*e & DUNE_PTE_P)
		return true;
	page = dune_page_alloc(1);
	if (!page)
		return false;
	map_page(e, table_gpa(page));
	return true;
}

void dune_runtime_forget(void *p, size_t size)
{
	u64 at = (u64)p, end = at + size;
	dune_pte *e;
	void *page;

	for (; at < end; at += PAGE) {
		e = image_entry(at);
		if (!(*e & DUNE_PTE_P))
			continue;
		page = table_at(*e & DUNE_PTE_ADDR);
		WRITE_ONCE(*e, 0);
		invlpg(at);
		dune_page_free(page, 1);
	}
}

bool dune_page_need(const void *p)
{
	return dune_page_upper((u64)p);
}
