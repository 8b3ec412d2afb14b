// SPDX-License-Identifier: MIT OR Apache-2.0
/* Copies for the kernel: see dune_copies.h. start.c records where their memory is. */
#include "dune_copies.h"
#include "alone.h"

#define ALIGN		16
#define USED_BITS	32	/* of a mark: the window's are above the scratch's */

/* Takes @size bytes of @place, which has @end in all and @used in use. */
static void *take(u8 *place, u32 *used, u64 end, u64 size)
{
	u8 *p = place + *used;

	if (size > end - *used)
		return NULL;
	*used += (size + ALIGN - 1) & ~(u64)(ALIGN - 1);
	return p;
}

/* What is kept for the library is taken by dune_own_window() and dune_own_scratch() alone. */
static void *take_outside(u8 *place, u32 *used, u64 end, u64 size)
{
	if (*used > end - DUNE_COPIES_RESERVE)
		return NULL;
	return take(place, used, end - DUNE_COPIES_RESERVE, size);
}

void *dune_window_get(size_t size)
{
	struct dune_copies *c = &dune_self()->copies;

	return take_outside(c->window, &c->window_used, DUNE_WINDOW_SIZE, size);
}

void *dune_scratch_get(size_t size)
{
	struct dune_copies *c = &dune_self()->copies;

	return take_outside(c->scratch, &c->scratch_used, DUNE_SCRATCH_SIZE, size);
}

/* As dune_window_get(), for the library. */
void *dune_own_window(u64 size)
{
	struct dune_copies *c = &dune_self()->copies;

	return take(c->window, &c->window_used, DUNE_WINDOW_SIZE, size);
}

/* As dune_scratch_get(), for the library. */
void *dune_own_scratch(u64 size)
{
	struct dune_copies *c = &dune_self()->copies;

	return take(c->scratch, &c->scratch_used, DUNE_SCRATCH_SIZE, size);
}

uint64_t dune_copies_mark(void)
{
	const struct dune_copies *c = &dune_self()->copies;

	return (u64)c->window_used << USED_BITS | c->scratch_used;
}

void dune_copies_release(uint64_t mark)
{
	struct dune_copies *c = &dune_self()->copies;

	c->window_used = mark >> USED_BITS;
	c->scratch_used = mark;
}

uint64_t dune_kernel_at(const void *copy)
{
	const struct dune_copies *c = &dune_self()->copies;
	u64 in_window = (u64)copy - (u64)c->window, in_scratch = (u64)copy - (u64)c->scratch;

	if (in_scratch < DUNE_SCRATCH_SIZE)
		return c->scratch_shown + in_scratch;
	return in_window < DUNE_WINDOW_SIZE ? c->window_shown + in_window : (u64)copy;
}

uint64_t dune_show(const void *from, size_t size)
{
	void *copy = dune_window_get(size);

	if (!copy)
		return 0;
	memcpy(copy, from, size);
	return dune_kernel_at(copy);
}
