// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Page tables of the guest (APM volume 2, 5.3).
 *
 * The first page table maps every user address to itself; the process's own
 * mappings below it decide on rights and on what is mapped at all. An entry of 0
 * in the two upper levels stands for that identity. It is made, by the gigabyte,
 * when an address in it is first used (dune_pf_early(), on the way into a page
 * fault) or when one of the calls here needs it. A page that was unmapped by a
 * call is never 0 in those levels: it keeps its address and, in a large entry, PS.
 *
 * The arguments of functions here are addresses of the process; entries hold
 * guest-physical addresses (granule.c).
 *
 * A call that changes a range does either all of it or nothing: it first takes
 * every table that it will need (prepare()), and cannot fail after that.
 *
 * One lock orders all changes of the tables' shape. Leaf entries change by
 * compare-and-exchange, since the processor sets A and D in them meanwhile.
 * Tables are freed with their root only, so reading them needs no lock.
 */
#include "entry.h"
#include "hypercall.h"
#include "memory.h"
#include "tlb.h"

#define PAGE		4096ULL
#define ENTRIES		512
#define TOP		3		/* level of the root; 0: pages of 4 KB */
#define TABLE		(DUNE_PTE_P | DUNE_PTE_W | DUNE_PTE_U | DUNE_PTE_A)

/*
 * The word of a root that holds the number of its state, for tags that keep their
 * entries (tlb.c). The upper half of a root maps no user address, and the
 * processor ignores all other bits of an entry whose P is clear (APM volume 2, 5.3).
 */
#define STATE		511

static struct dune_lock lock;

/* Tables taken in advance, linked by their first word. */
struct spare {
	dune_pte *first;
};

static inline u64 level_size(int level)
{
	return PAGE << (9 * level);
}

static inline u64 level_index(u64 va, int level)
{
	return va >> (12 + 9 * level) & (ENTRIES - 1);
}

static inline dune_pte *table_of(dune_pte v)
{
	return (dune_pte *)to_va(v & DUNE_PTE_ADDR);
}

/* An entry for a table that new_table() made. */
static inline dune_pte link_to(const dune_pte *t)
{
	return to_gpa((u64)t) | TABLE;
}

/* Whether an entry above level 0 leads to a table. */
static inline int is_table(dune_pte v)
{
	return (v & (DUNE_PTE_P | DUNE_PTE_PS)) == DUNE_PTE_P;
}

static dune_pte *new_table(void)
{
	int dirty;
	dune_pte *t = dune_page_take(1, &dirty);

	if (!t)
		return NULL;
	if (dirty)
		memset(t, 0, PAGE);
	if (to_gpa((u64)t) == NO_GPA) {
		dune_page_free(t, 1);
		return NULL;
	}
	__atomic_fetch_add(&dune_process.tables, 1, __ATOMIC_RELAXED);
	return t;
}

static void free_table(dune_pte *t)
{
	__atomic_fetch_sub(&dune_process.tables, 1, __ATOMIC_RELAXED);
	dune_page_free(t, 1);
}

/* A table of @spare, or a new one where there is no @spare. */
static dune_pte *take_table(struct spare *spare)
{
	dune_pte *t;

	if (!spare)
		return new_table();
	t = spare->first;
	if (t) {
		spare->first = (dune_pte *)t[0];
		t[0] = 0;
	}
	return t;
}

static void release(struct spare *spare)
{
	while (spare->first)
		free_table(take_table(spare));
}

static int reserve(struct spare *spare, u64 count)
{
	dune_pte *t;

	while (count--) {
		t = new_table();
		if (!t) {
			release(spare);
			return -ENOMEM;
		}
		t[0] = (u64)spare->first;
		spare->first = t;
	}
	return 0;
}

u64 dune_pt_bytes(void)
{
	return dune_process.tables * PAGE;
}

/* Before dune_pt_new(): does the processor have pages of 1 GB? */
void dune_pt_init(int have_1g)
{
	dune_process.no_1g = !have_1g;
}

/*
 * A new page that is read before it is written costs two faults. So here and in
 * gigabyte() the first access is a write.
 */
dune_pte *dune_pt_new(void)
{
	dune_pte *root = new_table();

	if (root)
		WRITE_ONCE(root[0], 0);
	return root;
}

/*
 * The identity entry of the 1 GB around @va: a page, or a table of pages of
 * 2 MB. 0: no memory, or no granule is left.
 */
static dune_pte identity(u64 va, struct spare *spare)
{
	u64 v = to_gpa(va & ~(level_size(2) - 1));
	dune_pte *t;
	int i;

	if (unlikely(v == NO_GPA))
		return 0;
	v |= DUNE_PTE_P | DUNE_PTE_W | DUNE_PTE_A | DUNE_PTE_D | DUNE_PTE_PS;
	if (va - dune_process.super_base >= dune_process.super_size)
		v |= DUNE_PTE_U;
	if (!dune_process.no_1g)
		return v;
	t = take_table(spare);
	if (!t)
		return 0;
#pragma GCC unroll 8
	for (i = 0; i < ENTRIES; i++)
		t[i] = v + i * level_size(1);
	return link_to(t);
}

/* Set @e to @v if it is still 0; returns its value afterwards. */
static dune_pte fill(dune_pte *e, dune_pte v)
{
	dune_pte old = 0;

	if (__atomic_compare_exchange_n(e, &old, v, 0, __ATOMIC_SEQ_CST,
					__ATOMIC_SEQ_CST))
		return v;
	return old;
}

/*
 * The entry of the 1 GB around @va, made if it was missing. NULL: no memory, or
 * no granule for it.
 */
static dune_pte *gigabyte(dune_pte *root, u64 va, struct spare *spare)
{
	dune_pte *e = &root[level_index(va, TOP)], *t;
	dune_pte v = READ_ONCE(*e), new;

	if (!v) {
		t = take_table(spare);
		if (!t)
			return NULL;
		WRITE_ONCE(t[0], 0);
		v = fill(e, link_to(t));
		if (table_of(v) != t)
			free_table(t);
	}
	e = &table_of(v)[level_index(va, 2)];
	if (!READ_ONCE(*e)) {
		new = identity(va, spare);
		if (!new)
			return NULL;
		if (fill(e, new) != new && is_table(new))
			free_table(table_of(new));
	}
	return e;
}

/* Make sure that the identity entry of @va exists. */
int dune_pt_touch(dune_pte *root, u64 va)
{
	return gigabyte(root, va, NULL) ? 0 : -ENOMEM;
}

/*
 * The same for two addresses, in the first page table and in the one that is
 * loaded, with tables only of the @count @pages, since the arena has no others.
 * Unused ones are free afterwards. GS may have any value (dune_pf_early()).
 */
int dune_pt_touch_reserved(u64 first, u64 last, dune_pte *pages, u32 count)
{
	dune_pte *loaded = dune_active() ? table_of(read_cr3()) : dune_process.root;
	struct spare spare = { NULL };
	int made;

	__atomic_fetch_add(&dune_process.tables, count, __ATOMIC_RELAXED);
	for (; count; count--, pages += ENTRIES) {
		pages[0] = (u64)spare.first;
		spare.first = pages;
	}
	made = gigabyte(dune_process.root, first, &spare) &&
	       gigabyte(dune_process.root, last, &spare) &&
	       gigabyte(loaded, first, &spare) && gigabyte(loaded, last, &spare);
	release(&spare);
	return made ? 0 : -ENOMEM;
}

/* All memory that the entry of a page fault uses, since it must not fault there. */
int dune_pt_touch_core(dune_pte *root)
{
	if (dune_pt_touch(root, (u64)dune_stubs) ||
	    dune_pt_touch(root, (u64)&dune_process) ||
	    dune_pt_touch(root, (u64)dune_trap_table) ||
	    dune_page_touch(root) || dune_granule_touch(root))
		return -ENOMEM;
	return 0;
}

/* The leaf entry of @va, and its level. NULL: as gigabyte(). */
static dune_pte *leaf(dune_pte *root, u64 va, int *level, struct spare *spare)
{
	dune_pte *e = gigabyte(root, va, spare);
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
 * A page fault on a page that is not present, on the IST stack. Returns 1 if
 * the page is present now, and the instruction can be repeated. Must not fault
 * or use GS.
 */
int dune_pf_early(u64 va)
{
	dune_pte *root = table_of(read_cr3()), *e;
	int level;

	if (va >= USER_END)
		return 0;
	e = leaf(root, va, &level, NULL);
	if (!e)
		dune_hypercall(to_gpa(va) == NO_GPA ? HC_NO_GRANULE : HC_NO_PAGES,
			       va, 0, 0, 0, 0, 0);
	return e && (READ_ONCE(*e) & DUNE_PTE_P);
}

/* Replace the leaf @e of @level by a table that maps the same. Locked. */
static void split(dune_pte *e, int level, struct spare *spare)
{
	dune_pte *t = take_table(spare);
	dune_pte v = READ_ONCE(*e);
	u64 step = level_size(level - 1);
	u64 part;
	int i;

	do {
		part = level == 1 ? v & ~DUNE_PTE_PS : v;
		for (i = 0; i < ENTRIES; i++)
			t[i] = part + i * step;
	} while (!__atomic_compare_exchange_n(e, &v, link_to(t), 0,
					      __ATOMIC_SEQ_CST,
					      __ATOMIC_SEQ_CST));
}

/* The leaf of @va, split until it is not larger than @size. Locked, prepared. */
static dune_pte *leaf_below(dune_pte *root, u64 va, u64 size, int *level,
			    struct spare *spare)
{
	dune_pte *e;

	for (;;) {
		e = leaf(root, va, level, spare);
		if (level_size(*level) <= size)
			return e;
		split(e, *level, spare);
	}
}

/* @root is NULL before dune_enter(). */
static int check_range(const dune_pte *root, u64 va, u64 len)
{
	if (!root)
		return -EPERM;
	if (((va | len) & (PAGE - 1)) || len > USER_END || va > USER_END - len)
		return -EINVAL;
	return 0;
}

/* The largest page that may start at @va (and @pa) and has room in @len. */
static u64 fit(u64 va, u64 pa, u64 len)
{
	u64 size = level_size(2);

	while (((va | pa) & (size - 1)) || len < size)
		size >>= 9;
	return size;
}

/* The level of @va's leaf; 2, with *@made 0, where the leaf does not exist yet. */
static int depth(dune_pte *root, u64 va, int *made)
{
	dune_pte v = READ_ONCE(root[level_index(va, TOP)]);
	int level = 2;

	*made = 0;
	if (!v)
		return level;
	for (; level; level--) {
		v = READ_ONCE(table_of(v)[level_index(va, level)]);
		if (!v && level == 2)
			return level;
		*made = 1;
		if (!is_table(v))
			break;
	}
	return level;
}

/*
 * Take into @spare all tables that the leaves of [va, va + len) need, if none is
 * to be larger than fit() and @limit. Locked. Tables are only ever added to a
 * root, so the count cannot be too small afterwards.
 */
static int prepare(dune_pte *root, u64 va, u64 len, u64 pa, u64 limit,
		   struct spare *spare)
{
	u64 at = va, end = va + len, top = ~0ULL, middle = ~0ULL, count = 0;
	u64 want;
	int level, made;

	while (at < end) {
		if (to_gpa(at) == NO_GPA)
			return -ENOMEM;
		if (!READ_ONCE(root[level_index(at, TOP)]) &&
		    top != level_index(at, TOP)) {
			top = level_index(at, TOP);
			count++;
		}
		want = fit(at, pa + (at - va), end - at);
		if (want > limit)
			want = limit;
		level = depth(root, at, &made);
		if (level == 2 && (want < level_size(2) ||
				   (!made && dune_process.no_1g))) {
			if (middle != at >> 30)
				count++;
			middle = at >> 30;
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

/* Give @root a new state, different from all previous states of all roots. */
static void new_state(dune_pte *root)
{
	static u64 last;

	WRITE_ONCE(root[STATE], __atomic_add_fetch(&last, 2, __ATOMIC_RELAXED));
}

u64 dune_pt_state(const dune_pte *root)
{
	return READ_ONCE(root[STATE]);
}

/* After a change of @root. */
static void flush(dune_pte *root, u64 va, u64 len)
{
	new_state(root);
	if (dune_pt_root() != root)
		return;
	if (len == PAGE)
		dune_tlb_page(va);
	else
		dune_tlb_all();
	dune_tlb_is_clean();
}

/* A leaf with other rights; its address and all other bits are kept. */
static inline dune_pte with_rights(dune_pte v, u64 rights)
{
	return (v & ~DUNE_PT_RIGHTS) | rights;
}

/* @rights: nothing but DUNE_PT_RIGHTS. */
static inline void set_rights(dune_pte *e, u64 rights)
{
	dune_pte v = READ_ONCE(*e);

	while (!__atomic_compare_exchange_n(e, &v, with_rights(v, rights), 1,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}

/* Whether [pa, pa + len) has guest-physical addresses; granules are assigned if need be. */
static int all_reachable(u64 pa, u64 len)
{
	u64 at;

	for (at = pa; at < pa + len; at = (at | (level_size(2) - 1)) + 1) {
		if (to_gpa(at) == NO_GPA)
			return 0;
	}
	return 1;
}

int dune_pt_map(dune_pte *root, u64 va, u64 len, u64 pa, u64 rights)
{
	u64 at = va, end = va + len, flags, keep;
	struct spare spare = { NULL };
	dune_pte *e;
	int level, err;

	keep = DUNE_PT_RIGHTS | DUNE_PTE_USER1 | DUNE_PTE_USER2 | DUNE_PTE_USER3;
	err = check_range(root, va, len);
	if (!err)
		err = check_range(root, pa, len);
	if (!err && (rights & ~keep))
		err = -EINVAL;
	if (err)
		return err;
	if (!all_reachable(pa, len))
		return -ENOMEM;
	flags = dune_lock(&lock);
	err = prepare(root, va, len, pa, level_size(2), &spare);
	while (at < end && !err) {
		e = leaf_below(root, at, fit(at, pa, end - at), &level, &spare);
		__atomic_store_n(e, to_gpa(pa) | rights | (level ? DUNE_PTE_PS : 0),
				 __ATOMIC_SEQ_CST);
		at += level_size(level);
		pa += level_size(level);
	}
	release(&spare);
	dune_unlock(&lock, flags);
	if (!err)
		flush(root, va, len);
	return err;
}

/* The general case of dune_pt_protect(). */
static noinline int protect(dune_pte *root, u64 va, u64 len, u64 rights)
{
	u64 at = va, end = va + len, flags;
	struct spare spare = { NULL };
	dune_pte *e;
	int level, err;

	err = check_range(root, va, len);
	if (!err && (rights & ~DUNE_PT_RIGHTS))
		err = -EINVAL;
	if (err)
		return err;
	flags = dune_lock(&lock);
	err = prepare(root, va, len, va, level_size(2), &spare);
	while (at < end && !err) {
		e = leaf_below(root, at, fit(at, at, end - at), &level, &spare);
		set_rights(e, rights);
		at += level_size(level);
	}
	release(&spare);
	dune_unlock(&lock, flags);
	if (!err)
		flush(root, va, len);
	return err;
}

/* The table of 4 KB pages around @va, if the entries lead that far. */
static dune_pte *last_table(dune_pte *root, u64 va)
{
	dune_pte v = READ_ONCE(root[level_index(va, 3)]);
	int level;

	for (level = 2; level; level--) {
		if (!is_table(v))
			return NULL;
		v = READ_ONCE(table_of(v)[level_index(va, level)]);
	}
	return is_table(v) ? table_of(v) : NULL;
}

/*
 * The number of the page at @va, in a form in which other addresses have larger
 * numbers than all pages: the low 12 bits of @va, zero for a page, are on top.
 */
static inline u64 page_number(u64 va)
{
	return va >> 12 | va << 52;
}

/* One page of the first root, in another 2 MB than the previous one. */
static noinline int protect_next(dune_pte *root, u64 va, u64 len, u64 rights)
{
	dune_pte *table = check_range(root, va, len) ? NULL : last_table(root, va);
	struct dune_thread *t = dune_self();

	if (!table)
		return protect(root, va, len, rights);
	if (!t->tags)
		WRITE_ONCE(t->leaf, va >> 21 << LEAF_SHIFT | (u64)table >> 12);
	set_rights(&table[level_index(va, 0)], rights);
	/* Also where a handler that interrupted this function has used the first tag. */
	if (READ_ONCE(t->tags)) {
		WRITE_ONCE(t->leaf, NO_LEAF);
		flush(root, va, len);
		return 0;
	}
	invlpg(va);
	return 0;
}

/*
 * One page is the hot path of programs that use faults as events, so each thread
 * remembers the last table that it used. Such a table lives as long as its root,
 * and the first root is never freed. A signal's handler may interrupt this and
 * use it, too: so the table and the 2 MB that it maps are one word (struct
 * dune_thread). A thread that uses tags remembers no table: other tags may hold the
 * page, too (flush()).
 */
int dune_pt_protect(dune_pte *root, u64 va, u64 len, u64 rights)
{
	u64 number = page_number(va), leaf;
	dune_pte *table;

	/* Before dune_enter() there is no root, and no block of the thread. */
	if (len != PAGE || (rights & ~DUNE_PT_RIGHTS) ||
	    root != dune_process.root || unlikely(!root))
		return protect(root, va, len, rights);
	leaf = READ_ONCE(this_thread(leaf));
	/* Neither the key of NO_LEAF, which is -1, nor an address of no page fits. */
	if (unlikely((u64)((int64_t)leaf >> LEAF_SHIFT) != number / ENTRIES))
		return protect_next(root, va, len, rights);
	table = (dune_pte *)(leaf << (64 - LEAF_SHIFT) >> (64 - LEAF_SHIFT - 12));
	set_rights(&table[number % ENTRIES], rights);
	invlpg(va);
	return 0;
}

int dune_pt_unmap(dune_pte *root, u64 va, u64 len)
{
	return dune_pt_protect(root, va, len, 0);
}

int dune_pt_split(dune_pte *root, u64 va, u64 len, u64 size)
{
	struct spare spare = { NULL };
	u64 at, end, flags;
	int level, err;

	err = check_range(root, va, len);
	if (!err && size != PAGE && size != level_size(1))
		err = -EINVAL;
	if (err || !len)
		return err;
	at = va & ~(size - 1);
	end = (va + len + size - 1) & ~(size - 1);
	flags = dune_lock(&lock);
	err = prepare(root, at, end - at, at, size, &spare);
	for (; at < end && !err; at += size)
		leaf_below(root, at, size, &level, &spare);
	release(&spare);
	dune_unlock(&lock, flags);
	if (!err)
		flush(root, va, len);
	return err;
}

int dune_pt_walk(dune_pte *root, u64 va, u64 len, dune_pt_fn fn, void *arg)
{
	u64 at = va, end = va + len, size;
	dune_pte *e;
	int level, ret;

	ret = check_range(root, va, len);
	if (ret)
		return ret;
	while (at < end) {
		e = leaf(root, at, &level, NULL);
		if (!e)
			return -ENOMEM;
		size = level_size(level);
		at &= ~(size - 1);
		ret = fn(e, at, size, arg);
		if (ret)
			return ret;
		at += size;
	}
	return 0;
}

dune_pte *dune_pt_entry(dune_pte *root, u64 va, u64 *size)
{
	dune_pte *e;
	int level;

	if (!root || va >= USER_END)
		return NULL;
	e = leaf(root, va, &level, NULL);
	if (e && size)
		*size = level_size(level);
	return e;
}

static void free_tables(dune_pte *t, int level)
{
	int i;

	for (i = 0; level && i < ENTRIES; i++) {
		if (is_table(t[i]))
			free_tables(table_of(t[i]), level - 1);
	}
	free_table(t);
}

/* Locked. Entries of 0 stay 0 in the copy. */
static dune_pte *clone(const dune_pte *from, int level)
{
	dune_pte *to = new_table(), *sub;
	int i;

	if (!to)
		return NULL;
	for (i = 0; i < ENTRIES; i++) {
		dune_pte v = READ_ONCE(from[i]);

		if (!level || !is_table(v)) {
			to[i] = v;
			continue;
		}
		sub = clone(table_of(v), level - 1);
		if (!sub) {
			free_tables(to, level);
			return NULL;
		}
		to[i] = to_gpa((u64)sub) | (v & ~DUNE_PTE_ADDR);
	}
	return to;
}

dune_pte *dune_pt_clone(dune_pte *root)
{
	dune_pte *copy;
	u64 flags;

	if (!root)
		return NULL;
	flags = dune_lock(&lock);
	copy = clone(root, TOP);
	dune_unlock(&lock, flags);
	if (copy)
		new_state(copy);
	return copy;
}

int dune_pt_free(dune_pte *root)
{
	if (!root)
		return -EPERM;
	if (root == dune_pt_root() || root == dune_process.root)
		return -EBUSY;
	free_tables(root, TOP);
	return 0;
}
