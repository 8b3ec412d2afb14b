// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The tables of the guest's page tables, and the identity that fills them (APM
 * vol. 2, 5.3).
 *
 * The first page table maps every user address to itself; the process's own
 * mappings below it decide on rights and on whether an address is mapped. An entry of 0
 * in the two upper levels stands for that identity. It is made, by the gigabyte,
 * when an address in it is first used (dune_pf_early(), on the way into a page
 * fault) or when a call of pgtable.c needs it. A page that was unmapped by a call is
 * never 0 in those levels: it keeps its address and, in a large entry, PS.
 *
 * Tables are freed with their root only, so reading them needs no lock. An entry of
 * 0 is filled by compare-and-exchange, and so needs none either.
 */
#include "services.h"
#include "table.h"
#include "tlb.h"

static struct dune_lock *const tables_lock = &dune_process.locks[LOCK_TABLES];

/*
 * Returns a table without entries, or NULL if no page is left, or no granule for it.
 */
dune_pte *dune_table_new(void)
{
	bool dirty;
	dune_pte *t = dune_page_take(1, &dirty);

	if (!t)
		return NULL;
	if (dirty)
		memset(t, 0, PAGE);
	if (table_gpa(t) == NO_GPA) {
		dune_page_free(t, 1);
		return NULL;
	}
	__atomic_fetch_add(&dune_process.tables, 1, __ATOMIC_RELAXED);
	return t;
}

/* Gives @t back. No entry may lead to it any more. */
void dune_table_free(dune_pte *t)
{
	__atomic_fetch_sub(&dune_process.tables, 1, __ATOMIC_RELAXED);
	dune_page_free(t, 1);
}

/* Returns a table of @spare, or a new one if @spare is NULL; NULL if there is none. */
static dune_pte *take_table(struct spare *spare)
{
	dune_pte *t;

	if (!spare)
		return dune_table_new();
	t = spare->first;
	if (t) {
		spare->first = (dune_pte *)t[0];
		t[0] = 0;
	}
	return t;
}

/* Gives back the tables of @spare that were not needed. */
void dune_table_release(struct spare *spare)
{
	while (spare->first)
		dune_table_free(take_table(spare));
}

/* Puts @count new tables into @spare. Returns 0, or -ENOMEM with none in it. */
static int reserve(struct spare *spare, u64 count)
{
	dune_pte *t;

	while (count--) {
		t = dune_table_new();
		if (!t) {
			dune_table_release(spare);
			return -ENOMEM;
		}
		t[0] = (u64)spare->first;
		spare->first = t;
	}
	return 0;
}

/* Returns the bytes that are in use as page tables now. */
u64 dune_pt_bytes(void)
{
	return READ_ONCE(dune_process.tables) * PAGE;
}

/* Records whether the processor has pages of 1 GB. Called once, before dune_pt_new(). */
void dune_pt_init(bool have_1g)
{
	dune_process.have_1g = have_1g;
}

/*
 * Returns an empty root, or NULL without memory. A new page that is read before it is
 * written costs two faults. So here and in gigabyte_entry() the first access is a write.
 */
dune_pte *dune_pt_new(void)
{
	dune_pte *root = dune_table_new();

	if (root)
		WRITE_ONCE(root[0], 0);
	return root;
}

/*
 * Returns the identity entry for the 1 GB around @va, which is a page, or leads to a new
 * table of pages of 2 MB. Returns 0 if there is no memory or no granule is left.
 */
static dune_pte make_identity(u64 va, struct spare *spare)
{
	u64 v = to_gpa(va & ~(level_size(2) - 1));
	dune_pte *t;
	int i;

	if (unlikely(v == NO_GPA))
		return 0;
	v |= DUNE_PTE_P | DUNE_PTE_W | DUNE_PTE_A | DUNE_PTE_D | DUNE_PTE_PS;
	if (!is_ring0s_gigabyte(va))
		v |= DUNE_PTE_U;
	if (dune_process.have_1g)
		return v;
	t = take_table(spare);
	if (!t)
		return 0;
	/* The first access to a gigabyte takes 4,446 instructions; without unrolling, 5,790. */
#pragma GCC unroll 8
	for (i = 0; i < PT_ENTRIES; i++)
		t[i] = v + i * level_size(1);
	return link_to(t);
}

/* Sets @e to @v if it is still 0. Returns its value afterwards. */
static dune_pte fill_if_zero(dune_pte *e, dune_pte v)
{
	dune_pte old = 0;

	if (__atomic_compare_exchange_n(e, &old, v, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		return v;
	return old;
}

/*
 * Returns the entry of the 1 GB around @va, which is made if it is missing. Returns
 * NULL if there is no memory or no granule is left.
 */
static dune_pte *gigabyte_entry(dune_pte *root, u64 va, struct spare *spare)
{
	dune_pte *e = &root[level_index(va, PT_TOP)], *t;
	dune_pte v = READ_ONCE(*e), new;

	if (!v) {
		t = take_table(spare);
		if (!t)
			return NULL;
		WRITE_ONCE(t[0], 0);
		v = fill_if_zero(e, link_to(t));
		if (table_of(v) != t)
			dune_table_free(t);
	}
	e = &table_of(v)[level_index(va, 2)];
	if (!READ_ONCE(*e)) {
		new = make_identity(va, spare);
		if (!new)
			return NULL;
		if (fill_if_zero(e, new) != new && is_table(new))
			dune_table_free(table_of(new));
	}
	return e;
}

/* Makes the identity entries of [p, p + size) that are missing. Returns 0 or -ENOMEM. */
int dune_pt_touch(dune_pte *root, const void *p, u64 size)
{
	u64 va = (u64)p, end = va + size;

	for (; va < end; va = (va | (GB - 1)) + 1) {
		if (!gigabyte_entry(root, va, NULL))
			return -ENOMEM;
	}
	return 0;
}

/*
 * Makes the identity entries of @first and @last in the first page table, with tables only
 * of the @count @pages, since the arena has no others. Unused ones are free afterwards. GS
 * may have any value (dune_pf_early()). Returns 0 or -ENOMEM.
 */
int dune_pt_touch_reserved(u64 first, u64 last, dune_pte *pages, u32 count)
{
	struct spare spare = { NULL };
	bool made;

	__atomic_fetch_add(&dune_process.tables, count, __ATOMIC_RELAXED);
	for (; count; count--, pages += PT_ENTRIES) {
		pages[0] = (u64)spare.first;
		spare.first = pages;
	}
	made = gigabyte_entry(dune_process.root, first, &spare) &&
	       gigabyte_entry(dune_process.root, last, &spare);
	dune_table_release(&spare);
	return made ? 0 : -ENOMEM;
}

/*
 * Returns the leaf entry of @va and stores its level. Returns NULL without memory or
 * without a granule, as gigabyte_entry() does.
 */
dune_pte *dune_table_leaf(dune_pte *root, u64 va, int *level, struct spare *spare)
{
	dune_pte *e = gigabyte_entry(root, va, spare);
	dune_pte v;

	for (*level = 2; e && *level; ) {
		v = READ_ONCE(*e);
		if (!is_table(v))
			break;
		--*level;
		e = &table_of(v)[level_index(va, *level)];
	}
	return e;
}

/*
 * Handles a page fault on a page that is not present, on the IST stack: makes the leaf
 * entry of @va if it is missing. Returns true if the page is present now, and the
 * instruction can be repeated. Must not fault. It has less than 1 KB of stack (IST1_STEP).
 * GS is used only if the process has no host half, where entry.S has made it ring 0's.
 */
bool dune_pf_early(u64 va)
{
	dune_pte *root = table_of(read_cr3()), *e;
	int level;

	if (unlikely(va >= USER_END))
		return dune_page_upper(va);
	e = dune_table_leaf(root, va, &level, NULL);
	if (!e && to_gpa(va) == NO_GPA)
		dune_services->no_granule(va);
	else if (!e)
		dune_services->no_pages(va);
	return e && (READ_ONCE(*e) & DUNE_PTE_P);
}

/* Replaces the leaf @e of @level by a table that maps the same. LOCK_TABLES is held. */
static void split(dune_pte *e, int level, struct spare *spare)
{
	dune_pte *t = take_table(spare);
	dune_pte v = READ_ONCE(*e);
	u64 step = level_size(level - 1);
	u64 part;
	int i;

	dune_assert_held(tables_lock);
	do {
		part = level == 1 ? v & ~DUNE_PTE_PS : v;
		for (i = 0; i < PT_ENTRIES; i++)
			t[i] = part + i * step;
	} while (!__atomic_compare_exchange_n(e, &v, link_to(t), 0,
					      __ATOMIC_SEQ_CST,
					      __ATOMIC_SEQ_CST));
}

/*
 * Returns the leaf entry of @va, which is split until it maps no more than @size bytes,
 * by tables of dune_table_prepare(), and stores its level. LOCK_TABLES is held.
 */
dune_pte *dune_table_leaf_below(dune_pte *root, u64 va, u64 size, int *level, struct spare *spare)
{
	dune_pte *e;

	for (;;) {
		e = dune_table_leaf(root, va, level, spare);
		if (level_size(*level) <= size)
			return e;
		split(e, *level, spare);
	}
}

/* Returns the level of @va's leaf, or 2 with *@made false if the leaf does not exist yet. */
static int leaf_level(dune_pte *root, u64 va, bool *made)
{
	dune_pte v = READ_ONCE(root[level_index(va, PT_TOP)]);
	int level = 2;

	*made = false;
	if (!v)
		return level;
	for (; level; level--) {
		v = READ_ONCE(table_of(v)[level_index(va, level)]);
		if (!v && level == 2)
			return level;
		*made = true;
		if (!is_table(v))
			break;
	}
	return level;
}

/*
 * Takes into @spare all tables that the leaves of [va, va + len) need, if none is
 * to be larger than largest_page() and @limit. Returns 0, or -ENOMEM with none in it.
 * LOCK_TABLES is held. Tables are only ever added to a root, so the count cannot be too small
 * afterwards.
 */
int dune_table_prepare(dune_pte *root, u64 va, u64 len, u64 memory, u64 limit, struct spare *spare)
{
	u64 at = va, end = va + len, top = ~0ULL, middle = ~0ULL, count = 0;
	u64 want;
	int level;
	bool made;

	dune_assert_held(tables_lock);
	while (at < end) {
		if (to_gpa(at) == NO_GPA)
			return -ENOMEM;
		if (!READ_ONCE(root[level_index(at, PT_TOP)]) && top != level_index(at, PT_TOP)) {
			top = level_index(at, PT_TOP);
			count++;
		}
		want = largest_page(at, memory + (at - va), end - at);
		if (want > limit)
			want = limit;
		level = leaf_level(root, at, &made);
		if (level == 2 && (want < level_size(2) || (!made && !dune_process.have_1g))) {
			if (middle != at >> GB_SHIFT)
				count++;
			middle = at >> GB_SHIFT;
			level = 1;
		}
		if (level == 1 && want < level_size(1)) {
			level = 0;
			count++;
		}
		/* one table serves all of its entries */
		at = (at | (level_size(level ? level : 1) - 1)) + 1;
	}
	return reserve(spare, count);
}
