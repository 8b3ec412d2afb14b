// SPDX-License-Identifier: GPL-2.0-only
/*
 * The second level of an address space and of a vCPU, of either kind: see second_level.h.
 */
#include <linux/err.h>
#include <linux/mmap_lock.h>

#include "dune/memory/second_level.h"

DEFINE_STATIC_KEY_FALSE(second_level_mirrored);
DEFINE_STATIC_KEY_FALSE(second_level_kicks);

void second_level_use_mirror(bool accessed_dirty, bool large_1g,
			     unsigned int address_bits)
{
	mirror_init(accessed_dirty, large_1g, address_bits);
	static_branch_enable(&second_level_mirrored);
	static_branch_enable(&second_level_kicks);
}

void __init second_level_init(void)
{
	if (!static_key_enabled(&second_level_mirrored) && shootdown_is_needed())
		static_branch_enable(&second_level_kicks);
}

/* Mirrors and shootdowns are freed later than they are put: wait for the last. */
void second_level_cleanup(void)
{
	kick_cleanup();
}

unsigned int second_level_granules(void)
{
	return mirror_granules();
}

/* Gets the mirror or the shootdown of current->mm. mmap_lock is held for writing. */
static int get_locked(struct second_level *space)
{
	lockdep_assert_held_write(&current->mm->mmap_lock);
	if (static_branch_unlikely(&second_level_mirrored)) {
		struct mirror *mirror = mirror_get(current->mm);

		if (IS_ERR(mirror))
			return PTR_ERR(mirror);
		space->mirror = mirror;
	} else {
		struct shootdown *shootdown = shootdown_get(current->mm);

		if (IS_ERR(shootdown))
			return PTR_ERR(shootdown);
		space->shootdown = shootdown;
	}
	return 0;
}

/* Returns 0 or a negative errno for user mode. */
int second_level_get(struct second_level *space)
{
	int err;

	if (!static_branch_unlikely(&second_level_kicks))
		return 0;
	if (mmap_write_lock_killable(current->mm))
		return -EINTR;
	err = get_locked(space);
	mmap_write_unlock(current->mm);
	return err == -EINTR ? -ERESTARTNOINTR : err;
}

void second_level_put(struct second_level *space)
{
	if (space->mirror)
		mirror_put(space->mirror);
	if (space->shootdown)
		shootdown_put(space->shootdown);
}

int second_level_map_granule(const struct second_level *space, u64 gpa,
			     u64 address)
{
	return mirror_map_granule(space->mirror, gpa, address);
}

static int add_kick(const struct second_level *space, struct kick_vcpu *kick)
{
	if (space->mirror)
		return mirror_add_vcpu(space->mirror, kick);
	if (space->shootdown)
		return kick_add(&space->shootdown->kicks, kick);
	return 0;
}

static void remove_kick(const struct second_level *space,
			struct kick_vcpu *kick)
{
	if (space->mirror)
		mirror_remove_vcpu(space->mirror, kick);
	else if (space->shootdown)
		kick_remove(&space->shootdown->kicks, kick);
}

/* Returns 0, -ENOMEM, or -ENOSPC: too many vCPUs to be kicked. */
int second_level_add_vcpu(const struct second_level *space,
			  struct second_level_vcpu *vcpu)
{
	int err = add_kick(space, &vcpu->kick);

	if (err)
		return err;
	vcpu->space = space;
	if (space->mirror)
		return 0;
	err = root_create(&vcpu->root, current->mm);
	if (err)
		remove_kick(space, &vcpu->kick);
	return err;
}

void second_level_remove_vcpu(struct second_level_vcpu *vcpu)
{
	root_destroy(&vcpu->root);
	remove_kick(vcpu->space, &vcpu->kick);
}

u64 second_level_root(const struct second_level_vcpu *vcpu)
{
	if (vcpu->space->mirror)
		return mirror_eptp(vcpu->space->mirror);
	return root_address(&vcpu->root);
}
