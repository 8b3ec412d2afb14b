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

/*
 * Adds an assignment. Both arguments are numbers: of a granule and of a gigabyte of the
 * process. The lock is held. Returns 0 or -ENOMEM.
 *
 * The way from the gigabyte to the granule is stored first: a reader that finds an address by
 * its granule must then find the granule by its address. Readers keep what they found, so
 * nothing may fail between the two stores.
 */
static int granules_add(struct granules *granules, unsigned long granule, unsigned long gigabyte)
{
	int err;

	lockdep_assert_held(&granules->lock);
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
	unsigned long index;
	void *entry;
	int err = 0;

	granules_for_each(from, index, entry, 0, ULONG_MAX) {
		err = granules_map(to, granule_base(entry), (u64)index << GRANULE_SHIFT);
		if (err)
			break;
	}
	return err;
}

static u64 within(u64 number, u64 offset)
{
	return number << GRANULE_SHIFT | (offset & GRANULE_MASK);
}

/* Returns false if the granule has no address. For any context. */
bool granules_to_address(struct granules *granules, u64 gpa, u64 *address)
{
	u64 last = READ_ONCE(granules->last);
	u64 granule = gpa >> GRANULE_SHIFT;
	void *entry;

	if (unlikely(last >> 32 != granule || !last)) {
		entry = xa_load(&granules->to_address, granule);
		if (!entry)
			return false;
		last = granule << 32 | xa_to_value(entry);
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
		entry = xa_load(&granules->to_gpa, gigabyte);
		if (!entry)
			return false;
		last = (u64)xa_to_value(entry) << 32 | gigabyte;
		WRITE_ONCE(granules->last, last);
	}
	*gpa = within(last >> 32, address);
	return true;
}
