// SPDX-License-Identifier: GPL-2.0-only
/*
 * Granules: the guest-physical space of a mirror is handed out by the gigabyte to the parts
 * of the address space that a program uses. On a processor with few address bits that space
 * is smaller than the process's; mirrors on other processors have granules, too.
 *
 * User space decides which gigabyte gets which granule. No assignment is ever taken back,
 * so a reader needs no lock: an assignment that it found stays valid.
 */
#include <linux/lockdep.h>
#include <linux/slab.h>

#include "dune/memory/granule.h"

/* Makes an empty map. */
void granules_init(struct granules *granules)
{
	mutex_init(&granules->lock);
	/* User space fills them, so their memory is charged to it. */
	xa_init_flags(&granules->to_address, XA_FLAGS_ACCOUNT);
	xa_init_flags(&granules->to_gpa, XA_FLAGS_ACCOUNT);
}

/* Frees the map, which nobody uses any more. Does not sleep. */
void granules_destroy(struct granules *granules)
{
	xa_destroy(&granules->to_gpa);
	xa_destroy(&granules->to_address);
}

/* Adds an assignment to the xarrays: granules_add(). */
static int add_to_xarrays(struct granules *granules, unsigned long granule, unsigned long gigabyte)
{
	int err;

	err = xa_reserve(&granules->to_address, granule, GFP_KERNEL_ACCOUNT);
	if (err)
		return err;
	err = xa_err(xa_store(&granules->to_gpa, gigabyte,
			      xa_mk_value(granule), GFP_KERNEL_ACCOUNT));
	if (err)
		xa_release(&granules->to_address, granule);
	else
		xa_store(&granules->to_address, granule, xa_mk_value(gigabyte), 0);
	return err;
}

/*
 * Adds an assignment. Both arguments are numbers: of a granule and of a gigabyte of the
 * process. The lock is held. Returns 0 or -ENOMEM.
 *
 * A fault that finds an address by its granule makes an entry, and an invalidation of the address
 * must then find the granule, to drop it. So one store adds both ways to @few, and the way from the
 * gigabyte to the granule is stored first in the xarrays. Readers keep what they found, so nothing
 * may fail between the two stores.
 */
static int granules_add(struct granules *granules, unsigned long granule, unsigned long gigabyte)
{
	unsigned int n = granules->nr_few;

	lockdep_assert_held(&granules->lock);
	if (n == GRANULES_FEW)
		return add_to_xarrays(granules, granule, gigabyte);
	granules->few[n] = (u64)granule << 32 | gigabyte;
	/* Pairs with few_of(). */
	smp_store_release(&granules->nr_few, n + 1);
	return 0;
}

/* Returns how many pairs @few has. They stay as they are. For any context. */
static unsigned int few_of(const struct granules *granules)
{
	/* Pairs with granules_add(): the pairs are valid. */
	return smp_load_acquire(&granules->nr_few);
}

/**
 * granules_map() - give a gigabyte of the process a guest-physical address
 * @granules:	the map
 * @gpa:	guest-physical, a multiple of DUNE_GRANULE_SIZE
 * @address:	of the process, a multiple of DUNE_GRANULE_SIZE
 *
 * Context: process, may sleep.
 * Return: 0, also if the two are assigned to each other already; -EEXIST if either is
 * assigned to another; -ENOMEM.
 */
int granules_map(struct granules *granules, u64 gpa, u64 address)
{
	u64 has_address, has_gpa;
	bool a, g;
	int ret;

	mutex_lock(&granules->lock);
	a = granules_to_address(granules, gpa, &has_address);
	g = granules_to_gpa(granules, address, &has_gpa);
	if (a && g && has_address == address && has_gpa == gpa)
		ret = 0;
	else if (a || g)
		ret = -EEXIST;
	else
		ret = granules_add(granules, gpa >> GRANULE_SHIFT, address >> GRANULE_SHIFT);
	mutex_unlock(&granules->lock);
	return ret;
}

/* Returns a copy of @from, which may grow meanwhile, or NULL without memory. May sleep. */
struct granules *granules_clone(struct granules *from)
{
	struct granules *clone = kzalloc(sizeof(*clone), GFP_KERNEL_ACCOUNT);

	if (!clone)
		return NULL;
	granules_init(clone);
	if (!granules_copy(clone, from))
		return clone;
	granules_free(clone);
	return NULL;
}

/* Frees a map of granules_clone(), or nothing if @granules is NULL. Does not sleep. */
void granules_free(struct granules *granules)
{
	if (granules)
		granules_destroy(granules);
	kfree(granules);
}

/*
 * Gives @to all that @from has, which may grow meanwhile. Called in process context; may sleep.
 * Returns 0 or an error of granules_map().
 */
int granules_copy(struct granules *to, struct granules *from)
{
	struct granule_walk walk = { .last = ULONG_MAX };
	int err = 0;

	while (!err && granules_next(from, &walk))
		err = granules_map(to, walk.gpa, (u64)walk.gigabyte << GRANULE_SHIFT);
	return err;
}

/*
 * Finds the next gigabyte from @walk->first to @walk->last that has a granule, in any order.
 * Returns false if there is none. What is added meanwhile may be missed. For any context.
 */
bool granules_next(struct granules *granules, struct granule_walk *walk)
{
	unsigned int few = few_of(granules);
	void *entry;

	while (walk->nr_few < few) {
		u64 pair = granules->few[walk->nr_few++];

		if ((u32)pair < walk->first || (u32)pair > walk->last)
			continue;
		walk->gigabyte = (u32)pair;
		walk->gpa = pair >> 32 << GRANULE_SHIFT;
		return true;
	}
	if (few < GRANULES_FEW || walk->first > walk->last)
		return false;
	walk->gigabyte = walk->first;
	entry = xa_find(&granules->to_gpa, &walk->gigabyte, walk->last, XA_PRESENT);
	if (!entry)
		return false;
	walk->first = walk->gigabyte + 1;
	walk->gpa = (u64)xa_to_value(entry) << GRANULE_SHIFT;
	return true;
}

static u64 within(u64 number, u64 offset)
{
	return number << GRANULE_SHIFT | (offset & GRANULE_MASK);
}

/*
 * Finds the pair whose half at @shift is @number: the granule's at 32, the gigabyte's at 0. Returns
 * false if @few has none.
 */
static bool find_few(const struct granules *granules, int shift, u64 number, u64 *pair)
{
	unsigned int i, few = few_of(granules);

	for (i = 0; i < few; i++) {
		*pair = granules->few[i];
		if ((u32)(*pair >> shift) == number)
			return true;
	}
	return false;
}

/* Returns false if the granule has no address. For any context. */
bool granules_to_address(struct granules *granules, u64 gpa, u64 *address)
{
	u64 last = READ_ONCE(granules->last);
	u64 granule = gpa >> GRANULE_SHIFT;
	void *entry;

	if (unlikely(last >> 32 != granule || !last)) {
		if (!find_few(granules, 32, granule, &last)) {
			entry = xa_load(&granules->to_address, granule);
			if (!entry)
				return false;
			last = granule << 32 | xa_to_value(entry);
		}
		WRITE_ONCE(granules->last, last);
	}
	*address = within((u32)last, gpa);
	return true;
}

/* Returns false if the address has no granule. For any context. */
bool granules_to_gpa(struct granules *granules, u64 address, u64 *gpa)
{
	u64 last = READ_ONCE(granules->last);
	u64 gigabyte = address >> GRANULE_SHIFT;
	void *entry;

	if (unlikely((u32)last != gigabyte || !last)) {
		if (!find_few(granules, 0, gigabyte, &last)) {
			entry = xa_load(&granules->to_gpa, gigabyte);
			if (!entry)
				return false;
			last = (u64)xa_to_value(entry) << 32 | gigabyte;
		}
		WRITE_ONCE(granules->last, last);
	}
	*gpa = within(last >> 32, address);
	return true;
}
