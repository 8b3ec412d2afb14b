// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The calls on page tables of dune.h (APM vol. 2, 5.3); table.c has the tables.
 *
 * The arguments of functions here are addresses of the process; entries hold
 * guest-physical addresses (granule.c).
 *
 * A call that changes a range does either all of it or nothing: it first takes
 * every table that it will need (dune_table_prepare()), and cannot fail after that.
 *
 * Changes of the tables' shape take LOCK_TABLES, except that table.c fills entries of 0
 * without it. dune_pt_map() replaces a leaf by one store. The rights of a leaf change by
 * compare-and-exchange, since the processor sets A and D in it meanwhile. Reading takes no
 * lock (table.c).
 */
#include "table.h"
#include "thread.h"
#include "tlb.h"

static struct dune_lock *const lock = &dune_process.locks[LOCK_TABLES];

/*
 * Returns -EPERM if @root is NULL, -EINVAL for a bad range, or 0. Outside the guest
 * dune_pt_root() returns NULL. Functions here do not test more than this: in
 * dune_pt_protect() a test of the ring would take an instruction of each call (protect_cycle:
 * 147, and 145 without), and the others work on any root (tests/libdune/granule_narrow.c).
 */
static int check_range(const dune_pte *root, u64 va, u64 len)
{
	if (!root)
		return -EPERM;
	if (((va | len) & (PAGE - 1)) || len > USER_END || va > USER_END - len)
		return -EINVAL;
	return 0;
}

/*
 * Gives @root a new generation, different from all previous generations of all roots.
 * Generations are even, since bit 0 of the word is P (GENERATION).
 */
static void new_generation(dune_pte *root)
{
	static u64 last;

	WRITE_ONCE(root[GENERATION], __atomic_add_fetch(&last, 2, __ATOMIC_RELAXED));
}

/*
 * Gives @root a new generation, and flushes [va, va + len) if @root is loaded. Called
 * after each change of @root, except that dune_pt_protect() of one page by a thread
 * without PCIDs flushes that page itself. Afterwards the loaded PCID counts as clean, also
 * of changes that other threads have made meanwhile: this thread has to flush them (dune.h).
 */
static void flush(dune_pte *root, u64 va, u64 len)
{
	new_generation(root);
	if (dune_pt_root() != root)
		return;
	if (len == PAGE)
		dune_tlb_page(va);
	else
		dune_tlb_all();
	dune_tlb_is_clean();
}

/* Returns leaf @v with other rights. Its address and all other bits are kept. */
static inline dune_pte with_rights(dune_pte v, u64 rights)
{
	return (v & ~DUNE_PT_RIGHTS) | rights;
}

/* Sets the rights of leaf @e. @rights has no other bits than DUNE_PT_RIGHTS. */
static inline void set_rights(dune_pte *e, u64 rights)
{
	dune_pte v = READ_ONCE(*e);

	while (!__atomic_compare_exchange_n(e, &v, with_rights(v, rights), 1,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
}

/*
 * Assigns granules to [memory, memory + len). Returns whether all of it has guest-physical
 * addresses now.
 */
static bool assign_granules(u64 memory, u64 len)
{
	u64 at;

	for (at = memory; at < memory + len; at = (at | (level_size(2) - 1)) + 1) {
		if (to_gpa(at) == NO_GPA)
			return false;
	}
	return true;
}

int dune_pt_map(dune_pte *root, u64 va, u64 len, u64 memory, u64 rights)
{
	u64 at = va, end = va + len, flags, keep;
	struct spare spare = { NULL };
	dune_pte *e;
	int level, err;

	keep = DUNE_PT_RIGHTS | DUNE_PTE_USER1 | DUNE_PTE_USER2 | DUNE_PTE_USER3;
	err = check_range(root, va, len);
	if (err)
		return err;
	err = check_range(root, memory, len);
	if (err)
		return err;
	if (rights & ~keep)
		return -EINVAL;
	if (!assign_granules(memory, len))
		return -ENOMEM;
	flags = dune_lock(lock);
	err = dune_table_prepare(root, va, len, memory, level_size(2), &spare);
	while (at < end && !err) {
		e = dune_table_leaf_below(root, at, largest_page(at, memory, end - at),
					  &level, &spare);
		__atomic_store_n(e, to_gpa(memory) | rights | (level ? DUNE_PTE_PS : 0),
				 __ATOMIC_SEQ_CST);
		at += level_size(level);
		memory += level_size(level);
	}
	dune_table_release(&spare);
	dune_unlock(lock, flags);
	if (!err)
		flush(root, va, len);
	return err;
}

/* Does what dune_pt_protect() does, for any range and root. */
static noinline int protect(dune_pte *root, u64 va, u64 len, u64 rights)
{
	u64 at = va, end = va + len, flags;
	struct spare spare = { NULL };
	dune_pte *e;
	int level, err;

	err = check_range(root, va, len);
	if (err)
		return err;
	if (rights & ~DUNE_PT_RIGHTS)
		return -EINVAL;
	flags = dune_lock(lock);
	err = dune_table_prepare(root, va, len, va, level_size(2), &spare);
	while (at < end && !err) {
		e = dune_table_leaf_below(root, at, largest_page(at, at, end - at), &level, &spare);
		set_rights(e, rights);
		at += level_size(level);
	}
	dune_table_release(&spare);
	dune_unlock(lock, flags);
	if (!err)
		flush(root, va, len);
	return err;
}

/* Returns the table of 4 KB pages around @va, or NULL if the entries do not lead that far. */
static dune_pte *find_last_table(dune_pte *root, u64 va)
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
 * Rotates @va right by 12 bits. The result is the number of the page if @va is a page's
 * address, and 2^52 or more otherwise, since the offset in the page comes to the top.
 */
static inline u64 page_number(u64 va)
{
	return va >> 12 | va << 52;
}

/* Returns dune_thread.last_table for @table, which maps the 2 MB around @va. */
static inline u64 last_table_pack(u64 va, const dune_pte *table)
{
	return va >> 21 << LAST_TABLE_SHIFT | (u64)table >> 12;
}

/*
 * Returns the number of the 2 MB that the table in @last maps. For NO_LAST_TABLE all bits
 * are ones, since the shift copies the sign.
 */
static inline u64 last_table_key(u64 last)
{
	return (u64)((int64_t)last >> LAST_TABLE_SHIFT);
}

/* Returns the table in @last. Two shifts need no mask of 35 bits in a register. */
static inline dune_pte *last_table_of(u64 last)
{
	return (dune_pte *)(last << (64 - LAST_TABLE_SHIFT) >> (64 - LAST_TABLE_SHIFT - 12));
}

/* Sets the rights of a page of the first root that is in other 2 MB than the previous one. */
static noinline int protect_next(dune_pte *root, u64 va, u64 len, u64 rights)
{
	dune_pte *table = check_range(root, va, len) ? NULL : find_last_table(root, va);
	struct dune_thread *t = dune_self();

	if (!table)
		return protect(root, va, len, rights);
	if (!t->pcid_generations)
		WRITE_ONCE(t->last_table, last_table_pack(va, table));
	set_rights(&table[level_index(va, 0)], rights);
	/* This is tested again: a handler may have used the first PCID meanwhile. */
	if (READ_ONCE(t->pcid_generations)) {
		WRITE_ONCE(t->last_table, NO_LAST_TABLE);
		flush(root, va, len);
		return 0;
	}
	invlpg(va);
	return 0;
}

/*
 * A call for one page is the hot path of programs that use faults as events, so each
 * thread remembers the last table that it used. Such a table lives as long as its root,
 * and the first root is never freed. A signal's handler may interrupt this function and
 * call it, too: so the table and the 2 MB that it maps are one word (struct
 * dune_thread). A thread that uses PCIDs remembers no table, since the TLB may hold the
 * page under other PCIDs, too (flush()).
 */
int dune_pt_protect(dune_pte *root, u64 va, u64 len, u64 rights)
{
	u64 number = page_number(va), last;
	dune_pte *table;

	/* Before dune_enter() there is no root, and no block of the thread. */
	if (len != PAGE || (rights & ~DUNE_PT_RIGHTS) ||
	    root != dune_process.root || unlikely(!root))
		return protect(root, va, len, rights);
	last = READ_ONCE(this_thread(last_table));
	/*
	 * The test fails for NO_LAST_TABLE, whose key is -1, and for an address that is not
	 * a page's, whose number is larger than every key.
	 */
	if (unlikely(last_table_key(last) != number / PT_ENTRIES))
		return protect_next(root, va, len, rights);
	table = last_table_of(last);
	set_rights(&table[number % PT_ENTRIES], rights);
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
	if (err)
		return err;
	if (size != PAGE && size != level_size(1))
		return -EINVAL;
	if (!len)
		return 0;
	at = va & ~(size - 1);
	end = (va + len + size - 1) & ~(size - 1);
	flags = dune_lock(lock);
	err = dune_table_prepare(root, at, end - at, at, size, &spare);
	for (; at < end && !err; at += size)
		dune_table_leaf_below(root, at, size, &level, &spare);
	dune_table_release(&spare);
	dune_unlock(lock, flags);
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
		e = dune_table_leaf(root, at, &level, NULL);
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
	e = dune_table_leaf(root, va, &level, NULL);
	if (e && size)
		*size = level_size(level);
	return e;
}

static void free_tables(dune_pte *t, int level)
{
	int i;

	for (i = 0; level && i < PT_ENTRIES; i++) {
		if (is_table(t[i]))
			free_tables(table_of(t[i]), level - 1);
	}
	dune_table_free(t);
}

/* Returns a copy of a table of @level and of all below, or NULL. LOCK_TABLES is held. */
static dune_pte *clone(const dune_pte *from, int level)
{
	dune_pte *to = dune_table_new(), *sub;
	int i;

	dune_assert_held(lock);
	if (!to)
		return NULL;
	for (i = 0; i < PT_ENTRIES; i++) {
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
		to[i] = table_gpa(sub) | (v & ~DUNE_PTE_ADDR);
	}
	return to;
}

dune_pte *dune_pt_clone(dune_pte *root)
{
	dune_pte *copy;
	u64 flags;

	if (!root)
		return NULL;
	flags = dune_lock(lock);
	copy = clone(root, PT_TOP);
	dune_unlock(lock, flags);
	if (copy)
		new_generation(copy);
	return copy;
}

int dune_pt_free(dune_pte *root)
{
	if (!root)
		return -EPERM;
	if (root == dune_pt_root() || root == dune_process.root)
		return -EBUSY;
	free_tables(root, PT_TOP);
	return 0;
}
