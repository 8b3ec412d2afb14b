// SPDX-License-Identifier: GPL-2.0-only
/*
 * The mirror: a process's page table in EPT's format (SDM vol. 3, 29.3), made on
 * faults and dropped when the kernel takes something back. This file has the rule that all
 * mirror_*.c keep, and the life of a mirror.
 *
 * The rule: at any time at which a guest can run, each entry allows at most what the
 * process's own page table allows at that time. How the rule is kept:
 *
 * Making an entry. The process's page table is read as the processor would read it, by
 * its hardware bits (walk.c). A page is readable if it is present and user mode's, so a
 * page with PROT_NONE, a NUMA hint or a migration entry is not. It is writable if it is
 * writable on all levels and dirty already: the kernel clears the dirty bit only together
 * with a notifier call, so EPT's dirty bits report nothing that the kernel does not
 * know, and no dirty bit can be lost. It is executable if no level has NX. Nothing is
 * pinned.
 *
 * Dropping an entry. Each operation of the kernel that takes a right, a page or a dirty
 * bit from a page table is bracketed by invalidate_range_start() and _end() of an mmu
 * notifier: fork (copy_page_range()), mprotect, NUMA hints and
 * userfaultfd's write protection (change_protection()), munmap, truncation,
 * MADV_DONTNEED (unmap_vmas(), zap_page_range*()), MADV_FREE, copy on write
 * (wp_page_copy()), reclaim, memory failure and migration (try_to_unmap_one(),
 * try_to_migrate_one(), migrate_vma_collect()), write-back (page_mkclean() and
 * DAX's, through page_vma_mkclean_one()), mremap, KSM, THP split and collapse,
 * hugetlb, soft-dirty (clear_refs), uprobes, the OOM reaper. exit_mmap() calls
 * release(). An operation without such a call adds rights (a fault), or changes only
 * the accessed bit (MADV_COLD), on which nothing here depends.
 *
 * A fork takes nothing but the right to write. So at its first announcement all entries lose that
 * right, and the others find none that has it (mirror.writable): mirror_invalidate_start().
 *
 * Both at the same time. An entry is made under mirror.lock, from a walk before the lock
 * was taken. An invalidation takes the lock at its start, to count itself in progress,
 * and at its end, to advance mirror.sequence; it changes the page table in between. When
 * the lock's holder makes an entry, an invalidation of the entry's range
 *  - has not started: its start will drop the entry;
 *  - or is in progress: the entry is refused;
 *  - or has ended, after the sequence was read: the entry is refused;
 *  - or has ended before that: the walk saw what it did, since the sequence is
 *    written after the page table and read before it.
 * The end of a change of rights at address 0 is not announced: it counts as in progress until
 * the next fill (mirror_settle()).
 *
 * Flushing. After entries were dropped, every vCPU must leave the guest and flush its TLB
 * (INVEPT) before it enters again, and the kernel must not continue before the vCPUs
 * have left. So mirror.generation is advanced, which each entry to the guest looks at, and
 * the vCPUs are kicked (kick.h). A page of the mirror itself is reused only after this, unless
 * its tree has no vCPU (mirror_drop_tree()). All of it is done before the lock is dropped, so a
 * side that finds no entry need not flush.
 *
 * An entry that is added or gets more rights needs no flush: the processor caches no
 * entry that is not present, and an EPT violation invalidates those of its address
 * (SDM vol. 3, 29.4.3.1).
 *
 * Several address spaces. If a process has opened /dev/dune more than once, each address space
 * has a tree of tables of its own (struct mirror_tree), since each may have private memory
 * (private.c), which no other may reach. What is above holds for each tree: a fault makes
 * entries in the tree of its vCPU, which is on the list of trees as long as it has that
 * vCPU, and an invalidation drops entries from all trees of the list. A tree without vCPUs
 * has no entry for memory of the process. Granules, spare tables, the lock and the counts
 * are the process's. A tree's root is in the EPT pointer, with which the processor tags what it
 * caches. When the page of a root has become the root of another tree, the first entry of
 * each vCPU on each CPU flushes (second_level_migrated()).
 */
#include <linux/lockdep.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <asm/cpufeature.h>

#include "dune/memory/mirror_internal.h"
#include "dune/memory/pool.h"
#include "dune/memory/walk.h"

struct mirror_machine mirror_machine __ro_after_init;

/**
 * mirror_init() - learn about the machine
 * @accessed_dirty: EPT has accessed and dirty bits
 * @large_1g:	EPT has pages of 1 GB; every EPT here has pages of 2 MB
 * @address_bits: width of a guest-physical address in bits, 36 or more
 *
 * Context: called once, at load.
 */
void mirror_init(bool accessed_dirty, bool large_1g, unsigned int address_bits)
{
	walk_init();
	mirror_machine.accessed = accessed_dirty;
	mirror_machine.max_level = large_1g ? 3 : 2;
	mirror_machine.split_exec = boot_cpu_has_bug(X86_BUG_ITLB_MULTIHIT);
	/*
	 * No more granules than gigabytes of the process, plus granule 0, which no address
	 * of the process has.
	 */
	mirror_machine.granules = address_bits > PROCESS_BITS ?
		BIT(PROCESS_BITS - GRANULE_SHIFT) + 1 : BIT(address_bits - GRANULE_SHIFT);
}

/* Returns dune_info.granules; 0 without mirrors. For any context. */
unsigned int mirror_granules(void)
{
	return mirror_machine.granules;
}

/* Frees the mirror, which has no tree any more. Called by the notifier core; must not sleep. */
void mirror_free(struct mmu_notifier *notifier)
{
	struct mirror *m = mirror_of(notifier);

	mirror_free_tables(m, &m->spares);
	pool_put(m->pool);
	granules_destroy(&m->granules);
	kick_list_destroy(&m->kicks);
	kfree(m);
}

/*
 * Returns the notifier of an empty mirror for @mm, or ERR_PTR(-ENOMEM). Called by the notifier
 * core for mirror_get(), with mmap_lock held for writing; may sleep.
 */
struct mmu_notifier *mirror_alloc(struct mm_struct *mm)
{
	struct mirror *m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);

	if (!m)
		return ERR_PTR(-ENOMEM);
	granules_init(&m->granules);
	spin_lock_init(&m->lock);
	INIT_LIST_HEAD(&m->trees);
	INIT_LIST_HEAD(&m->doomed);
	INIT_LIST_HEAD(&m->spares);
	if (kick_list_init(&m->kicks)) {
		mirror_free(&m->notifier);
		return ERR_PTR(-ENOMEM);
	}
	return &m->notifier;
}

/**
 * mirror_get() - the mirror of a process
 * @mm:		current->mm
 * @found:	returns it, counted, if there is no error
 *
 * The first one of an mm costs a pass over its mappings (mm_take_all_locks()).
 *
 * Context: process, in a system call, with mmap_lock held for writing; may sleep.
 * Return: 0, -ENOMEM, or -EINTR for a signal.
 */
int mirror_get(struct mm_struct *mm, struct mirror **found)
{
	struct mmu_notifier *notifier;

	lockdep_assert_held_write(&mm->mmap_lock);
	notifier = mmu_notifier_get_locked(&mirror_ops, mm);
	if (IS_ERR(notifier))
		return PTR_ERR(notifier);
	*found = mirror_of(notifier);
	return 0;
}

/*
 * Drops a reference; the caller's vCPUs were removed before. The last one frees the mirror
 * after a grace period. Called in process context.
 */
void mirror_put(struct mirror *m)
{
	mmu_notifier_put(&m->notifier);
}

/**
 * mirror_map_granule() - DUNE_MAP_GRANULE
 * @m:		the mirror of current->mm
 * @gpa:	guest-physical, see struct dune_granule
 * @address:	of the process
 *
 * Context: process, may sleep.
 * Return: 0, -EINVAL, -EEXIST or -ENOMEM.
 */
int mirror_map_granule(struct mirror *m, u64 gpa, u64 address)
{
	if ((gpa | address) & GRANULE_MASK || !gpa ||
	    gpa >> GRANULE_SHIFT >= mirror_machine.granules || address >> PROCESS_BITS)
		return -EINVAL;
	return granules_map(&m->granules, gpa, address);
}

/* Returns the granules that the mirror has now, for granules_free(), or NULL. May sleep. */
struct granules *mirror_clone_granules(struct mirror *m)
{
	return granules_clone(&m->granules);
}

/* Adds the granules of @from. May sleep. Returns 0, -EEXIST or -ENOMEM. */
int mirror_add_granules(struct mirror *m, struct granules *from)
{
	return granules_copy(&m->granules, from);
}

/*
 * Finds the process's address of a guest-physical one. Returns false if the granule has none. For
 * any context.
 */
bool mirror_address(struct mirror *m, u64 gpa, u64 *address)
{
	return granules_to_address(&m->granules, gpa, address);
}

/* Lets tables of @m come from @pool, and go there. Does not sleep. */
void mirror_use_pool(struct mirror *m, struct page_pool *pool)
{
	spin_lock(&m->lock);
	if (!m->pool)
		m->pool = pool_get(pool);
	spin_unlock(&m->lock);
}

/* Returns an empty table, or NULL. May sleep. */
static u64 *new_table(struct page_pool *pool)
{
	struct page *page = pool_take_table(pool, GFP_KERNEL);

	if (!page)
		return NULL;
	set_page_private(page, 0);
	return page_address(page);
}

/* Returns a tree without vCPUs, or NULL. @pool: of its tables, or NULL; stays until it is freed. */
struct mirror_tree *mirror_tree_create(struct page_pool *pool)
{
	struct mirror_tree *tree = kzalloc(sizeof(*tree), GFP_KERNEL_ACCOUNT);

	if (!tree)
		return NULL;
	mutex_init(&tree->lock);
	tree->pool = pool_get(pool);
	tree->root = new_table(pool);
	tree->low = new_table(pool);
	if (!tree->root || !tree->low) {
		mirror_tree_destroy(tree);
		return NULL;
	}
	/* One entry more than it has, so that it never counts as empty. */
	set_page_private(virt_to_page(tree->low), 1);
	ept_set_entry(tree->root, __pa(tree->low) | EPT_RIGHTS | VMX_EPT_ACCESS_BIT);
	return tree;
}

/* Frees a tree that has no vCPU, and so no table but these, which have no entry but the first. */
void mirror_tree_destroy(struct mirror_tree *tree)
{
	if (tree->low)
		pool_give_table(tree->pool, virt_to_page(tree->low), 1);
	if (tree->root)
		pool_give_table(tree->pool, virt_to_page(tree->root), 1);
	pool_put(tree->pool);
	kfree(tree);
}

/* Returns the EPT pointer (SDM vol. 3, 25.6.11). */
u64 mirror_tree_eptp(const struct mirror_tree *tree)
{
	return __pa(tree->root) | VMX_EPTP_MT_WB | VMX_EPTP_PWL_4 |
	       (mirror_machine.accessed ? VMX_EPTP_AD_ENABLE_BIT : 0);
}

/*
 * Makes @entry the tree's entry for granule 0. No address of the process has that granule
 * (mirror_map_granule()), so the entry is never dropped.
 */
void mirror_link_private(struct mirror *m, struct mirror_tree *tree, u64 entry)
{
	spin_lock(&m->lock);
	ept_set_entry(tree->low, entry);
	spin_unlock(&m->lock);
}

/*
 * Adds @vcpu to those that a drop kicks, and its tree to those that have entries. Called in
 * process context; may sleep. Returns 0 or -ENOSPC.
 */
int mirror_add_vcpu(struct mirror *m, struct mirror_tree *tree, struct kick_vcpu *vcpu)
{
	int err;

	mutex_lock(&tree->lock);
	err = kick_add(&m->kicks, vcpu);
	if (!err && !tree->vcpus++) {
		spin_lock(&m->lock);
		tree->number = ++m->last_tree;
		list_add_tail(&tree->link, &m->trees);
		spin_unlock(&m->lock);
	}
	mutex_unlock(&tree->lock);
	return err;
}

/*
 * Takes @vcpu, which must not run again, off the mirror. With the tree's last one its entries
 * for memory of the process are dropped.
 */
void mirror_remove_vcpu(struct mirror *m, struct mirror_tree *tree, struct kick_vcpu *vcpu)
{
	mutex_lock(&tree->lock);
	kick_remove(&m->kicks, vcpu);
	if (!--tree->vcpus) {
		mirror_drop_tree(m, tree);
		spin_lock(&m->lock);
		list_del(&tree->link);
		spin_unlock(&m->lock);
	}
	mutex_unlock(&tree->lock);
}

/*
 * Returns a count that changes when entries were dropped. A vCPU that is about to enter
 * the guest reads it after kick_enter(); if it has changed since the last entry, the vCPU
 * must flush its TLB (INVEPT of the EPTP).
 */
u64 mirror_generation(const struct mirror *m)
{
	return READ_ONCE(m->generation);
}
