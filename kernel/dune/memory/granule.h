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

/*
 * Most programs need no more granules than this. They lie far from each other, and each needs
 * nodes of its own in both xarrays: to copy two of them for a child took 20,000 instructions.
 */
#define GRANULES_FEW	16

/**
 * struct granules - a one-to-one map of gigabytes that only grows
 * @lock:	protects additions; readers need none
 * @few:	the pairs that were added first: the granule's number in the upper half, the
 *		gigabyte's in the lower
 * @nr_few:	their number. The xarrays are empty until it is GRANULES_FEW, and have those that
 *		are added afterwards
 * @to_address:	number of the process's gigabyte, by the granule's number
 * @to_gpa:	the same the other way round
 * @last:	the pair that was last looked up, in the format of @few
 */
struct granules {
	struct mutex lock;	/* see @lock above */
	u64 few[GRANULES_FEW];
	unsigned int nr_few;
	struct xarray to_address;
	struct xarray to_gpa;
	u64 last;
};

/**
 * struct granule_walk - a walk of the gigabytes of the process that have a granule
 * @first:	number of the first gigabyte that is looked for
 * @last:	the same of the last one
 * @nr_few:	how many of granules.few were visited
 * @gigabyte:	number of the gigabyte that was found
 * @gpa:	the address of its granule
 */
struct granule_walk {
	unsigned long first, last;
	unsigned int nr_few;
	unsigned long gigabyte;
	u64 gpa;
};

void granules_init(struct granules *granules);
void granules_destroy(struct granules *granules);
int granules_map(struct granules *granules, u64 gpa, u64 address);
int granules_copy(struct granules *to, struct granules *from);
struct granules *granules_clone(struct granules *from);
void granules_free(struct granules *granules);
bool granules_to_address(struct granules *granules, u64 gpa, u64 *address);
bool granules_to_gpa(struct granules *granules, u64 address, u64 *gpa);
bool granules_next(struct granules *granules, struct granule_walk *walk);

#endif /* DUNE_MEMORY_GRANULE_H */
