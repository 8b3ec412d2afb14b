/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The map from gigabytes of the guest-physical space to gigabytes of the process
 * (DUNE_MAP_GRANULE), which every mirror has.
 */
#ifndef DUNE_MEMORY_GRANULE_H
#define DUNE_MEMORY_GRANULE_H

#include <linux/dune.h>
#include <linux/mutex.h>
#include <linux/xarray.h>

#define GRANULE_SHIFT	30
#define GRANULE_MASK	(DUNE_GRANULE_SIZE - 1)

/**
 * struct granules - a one-to-one map of gigabytes that only grows
 * @lock:	protects additions; readers need none
 * @to_address:	number of the process's gigabyte, by the granule's number
 * @to_gpa:	the same the other way round
 * @last:	the pair that was last looked up: the granule's number in the upper half,
 *		the gigabyte's in the lower. A fault looks up three times, and each search
 *		takes 200 instructions.
 */
struct granules {
	struct mutex lock;	/* see @lock above */
	struct xarray to_address;
	struct xarray to_gpa;
	u64 last;
};

void granules_init(struct granules *granules);
void granules_destroy(struct granules *granules);
int granules_map(struct granules *granules, u64 gpa, u64 address);
int granules_copy(struct granules *to, struct granules *from);
struct granules *granules_clone(struct granules *from);
void granules_free(struct granules *granules);
bool granules_to_address(struct granules *granules, u64 gpa, u64 *address);
bool granules_to_gpa(struct granules *granules, u64 address, u64 *gpa);

/*
 * Executes the body for each gigabyte of the process, by number, from @first to
 * @last, that has a granule. granule_base(@entry) is the granule's address.
 */
#define granules_for_each(granules, index, entry, first, last) \
	xa_for_each_range(&(granules)->to_gpa, index, entry, first, last)

/* Returns the address of the gigabyte that an entry of either map names. */
static inline u64 granule_base(const void *entry)
{
	return (u64)xa_to_value(entry) << GRANULE_SHIFT;
}

#endif /* DUNE_MEMORY_GRANULE_H */
