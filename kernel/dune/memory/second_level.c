// SPDX-License-Identifier: GPL-2.0-only
/*
 * The second level of an address space and of a vCPU, of either kind: see second_level.h.
 */
#include <linux/mm.h>
#include <linux/mmap_lock.h>

#include "dune/memory/granule.h"
#include "dune/memory/second_level.h"

DEFINE_STATIC_KEY_FALSE(second_level_mirrored);
DEFINE_STATIC_KEY_FALSE(second_level_kicks);

void second_level_use_mirror(bool accessed_dirty, bool large_1g, unsigned int address_bits)
{
	mirror_init(accessed_dirty, large_1g, address_bits);
	static_branch_enable(&second_level_mirrored);
	static_branch_enable(&second_level_kicks);
}

int __init second_level_init(unsigned int address_bits)
{
	bool mirrored = static_key_enabled(&second_level_mirrored);

	if (!mirrored && shootdown_is_needed())
		static_branch_enable(&second_level_kicks);
	return private_init(mirrored, address_bits);
}

/* Mirrors and shootdowns are freed later than they are put: wait for the last. */
void second_level_cleanup(void)
{
	private_cleanup();
	kick_cleanup();
}

unsigned int second_level_granules(void)
{
	return mirror_granules();
}

/*
 * Gets the mirror or the shootdown of current->mm. Returns as second_level_get() does: a signal
 * that is not fatal ends mm_take_all_locks(), which the first one of an mm costs.
 */
static int get_notified(struct second_level *space)
{
	struct mm_struct *mm = current->mm;
	int err;

	if (mmap_write_lock_killable(mm))
		return -EINTR;
	if (static_branch_unlikely(&second_level_mirrored))
		err = mirror_get(mm, &space->mirror);
	else
		err = shootdown_get(mm, &space->shootdown);
	mmap_write_unlock(mm);
	return err == -EINTR ? -ERESTARTNOINTR : err;
}

int second_level_get(struct second_level *space)
{
	struct page_pool *pool = space->private ? space->private->pool : NULL;
	int err;

	if (!static_branch_unlikely(&second_level_kicks))
		return 0;
	if (!static_branch_unlikely(&second_level_mirrored))
		return get_notified(space);
	space->tree = mirror_tree_create(pool);
	if (!space->tree)
		return -ENOMEM;
	err = get_notified(space);
	if (err) {
		mirror_tree_destroy(space->tree);
		space->tree = NULL;
		return err;
	}
	mirror_use_pool(space->mirror, pool);
	return 0;
}

void second_level_put(struct second_level *space)
{
	if (space->mirror) {
		mirror_tree_destroy(space->tree);
		mirror_put(space->mirror);
	}
	if (space->private)
		private_destroy(space->private);
	granules_free(space->inherited);
	if (space->shootdown)
		shootdown_put(space->shootdown);
}

int second_level_map_granule(const struct second_level *space, u64 gpa, u64 address)
{
	return mirror_map_granule(space->mirror, gpa, address);
}

/* Makes the entry that leads to private memory, in the vCPU's or the address space's tables. */
static void link_private(struct second_level_vcpu *vcpu, u64 entry)
{
	struct second_level *space = vcpu->space;

	if (space->mirror)
		mirror_link_private(space->mirror, space->tree, entry);
	else
		root_link_private(&vcpu->root, entry);
}

/*
 * Returns the private memory of @space, which the first call makes, or NULL without memory. Two
 * threads may make one at the same time: the first is kept.
 */
static struct private_memory *get_private(struct second_level *space)
{
	struct private_memory *private = READ_ONCE(space->private), *fresh;

	if (private)
		return private;
	fresh = private_create(current->mm);
	if (!fresh)
		return NULL;
	private = cmpxchg(&space->private, NULL, fresh);
	if (!private)
		return fresh;
	private_destroy(fresh);
	return private;
}

int second_level_add_private(struct second_level_vcpu *vcpu, const struct private_pages *what,
			     u64 *gpa)
{
	struct private_memory *private = get_private(vcpu->space);
	int err;

	if (!private)
		return -ENOMEM;
	err = private_add(private, what, gpa);
	if (!err)
		link_private(vcpu, private->top);
	return err;
}

/*
 * A guest may access a page of private memory in any way, unless it is sealed. So any other fault
 * there means that another vCPU's thread has added the page since the access, or that this vCPU's
 * top level has no link yet.
 */
bool second_level_fill_private(struct second_level_vcpu *vcpu, u64 gpa, u32 flags)
{
	struct private_memory *private = READ_ONCE(vcpu->space->private);

	if (!private || !private_has(private, gpa) ||
	    !private_permits(private, gpa, flags & DUNE_FAULT_WRITE))
		return false;
	link_private(vcpu, private->top);
	return true;
}

int second_level_copy(struct second_level *to, const struct second_level *from,
		      const struct page *from_run, struct page *run)
{
	struct private_memory *copy = private_copy(from->private, from_run, run);

	if (IS_ERR(copy))
		return PTR_ERR(copy);
	to->private = copy;
	if (!from->mirror)
		return 0;
	to->inherited = mirror_clone_granules(from->mirror);
	return to->inherited ? 0 : -ENOMEM;
}

void second_level_move_private(struct second_level *space, struct mm_struct *mm)
{
	private_move(space->private, mm);
}

void second_level_leave_run(struct second_level *space, struct page *run)
{
	private_leave_run(space->private, run);
}

struct page *second_level_take_run(struct second_level *space)
{
	return private_take_run(space->private);
}

int second_level_inherit(struct second_level *space)
{
	int err = space->inherited ? mirror_add_granules(space->mirror, space->inherited) : 0;

	if (err)
		return err;
	granules_free(space->inherited);
	space->inherited = NULL;
	return 0;
}

/* Adds a vCPU to those that are kicked, if changes of memory kick vCPUs. */
static int add_kick(struct second_level *space, struct kick_vcpu *kick)
{
	if (space->mirror)
		return mirror_add_vcpu(space->mirror, space->tree, kick);
	if (space->shootdown)
		return kick_add(&space->shootdown->kicks, kick);
	return 0;
}

/* The opposite of add_kick(). */
static void remove_kick(struct second_level *space, struct kick_vcpu *kick)
{
	if (space->mirror)
		mirror_remove_vcpu(space->mirror, space->tree, kick);
	else if (space->shootdown)
		kick_remove(&space->shootdown->kicks, kick);
}

int second_level_add_vcpu(struct second_level *space, struct second_level_vcpu *vcpu)
{
	struct private_memory *private = READ_ONCE(space->private);
	int err = add_kick(space, &vcpu->kick);

	if (err)
		return err;
	if (!space->mirror)
		err = root_create(&vcpu->root, current->mm);
	if (err) {
		remove_kick(space, &vcpu->kick);
		return err;
	}
	vcpu->space = space;
	/* Pairs with the release in map_page() (private.c): with a page there is a top. */
	if (private && smp_load_acquire(&private->count))
		link_private(vcpu, private->top);
	return 0;
}

void second_level_remove_vcpu(struct second_level_vcpu *vcpu)
{
	if (!vcpu->space)
		return;
	root_destroy(&vcpu->root);
	remove_kick(vcpu->space, &vcpu->kick);
}

u64 second_level_root(const struct second_level_vcpu *vcpu)
{
	if (vcpu->space->mirror)
		return mirror_tree_eptp(vcpu->space->tree);
	return root_address(&vcpu->root);
}
