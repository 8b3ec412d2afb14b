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
 * Both at the same time. An entry is made under mirror.lock, from a walk before the lock
 * was taken. An invalidation takes the lock at its start, to count itself in progress,
 * and at its end, to advance mirror.sequence; it changes the page table in between. When
 * the lock's holder makes an entry, an invalidation of the entry's range
 *  - has not started: its start will drop the entry;
 *  - or is in progress: the entry is refused;
 *  - or has ended, after the sequence was read: the entry is refused;
 *  - or has ended before that: the walk saw what it did, since the sequence is
 *    written after the page table and read before it.
 *
 * Flushing. After entries were dropped, every vCPU must leave the guest and flush its TLB
 * (INVEPT) before it enters again, and the kernel must not continue before the vCPUs
 * have left. So mirror.generation is advanced, which each entry to the guest looks at, and
 * the vCPUs are kicked (kick.h). A page of the mirror itself is reused only after this.
 *
 * An entry that is added or gets more rights needs no flush: the processor caches no
 * entry that is not present, and an EPT violation invalidates those of its address
 * (SDM vol. 3, 29.4.3.1).
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <asm/cpufeature.h>

#include "dune/memory/mirror_internal.h"
#include "dune/memory/walk.h"

struct mirror_machine mirror_machine __ro_after_init;

int mirror_add_vcpu(struct mirror *m, struct kick_vcpu *vcpu)
{
	return kick_add(&m->kicks, vcpu);
}

/*
 * Takes @vcpu, which must not run again, off the mirror; the last one's entries are dropped.
 * Called in process context; may sleep.
 */
void mirror_remove_vcpu(struct mirror *m, struct kick_vcpu *vcpu)
{
	if (kick_remove(&m->kicks, vcpu))
		mirror_drop_addresses(m, 0, ULONG_MAX, true);
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

/*
 * Frees the mirror. Its tables are empty: removing the last vCPU dropped all entries. Called by
 * the notifier core; must not sleep.
 */
void mirror_free(struct mmu_notifier *notifier)
{
	struct mirror *m = mirror_of(notifier);

	free_page((unsigned long)m->root);
	mirror_free_tables(&m->spares);
	granules_destroy(&m->granules);
	kick_list_destroy(&m->kicks);
	kfree(m);
}

struct mmu_notifier *mirror_alloc(struct mm_struct *mm)
{
	struct mirror *m = kzalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);

	if (!m)
		return ERR_PTR(-ENOMEM);
	granules_init(&m->granules);
	spin_lock_init(&m->lock);
	INIT_LIST_HEAD(&m->doomed);
	INIT_LIST_HEAD(&m->spares);
	m->root = (u64 *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
	if (kick_list_init(&m->kicks) || !m->root) {
		mirror_free(&m->notifier);
		return ERR_PTR(-ENOMEM);
	}
	set_page_private(virt_to_page(m->root), 0);
	return &m->notifier;
}

/**
 * mirror_get() - the mirror of a process
 * @mm:		current->mm
 *
 * The first one of an mm costs a pass over its mappings (mm_take_all_locks()).
 *
 * Context: process, in a system call, with mmap_lock held for writing.
 * Return: the mirror, counted, or an ERR_PTR: -EINTR for a signal, -ENOMEM.
 */
struct mirror *mirror_get(struct mm_struct *mm)
{
	struct mmu_notifier *notifier;

	lockdep_assert_held_write(&mm->mmap_lock);
	notifier = mmu_notifier_get_locked(&mirror_ops, mm);
	return IS_ERR(notifier) ? ERR_CAST(notifier) : mirror_of(notifier);
}

/*
 * Drops a reference; the caller's vCPUs were removed before. The last one frees the mirror
 * after a grace period.
 */
void mirror_put(struct mirror *m)
{
	mmu_notifier_put(&m->notifier);
}

/* Returns the EPT pointer (SDM vol. 3, 25.6.11). */
u64 mirror_eptp(const struct mirror *m)
{
	return __pa(m->root) | VMX_EPTP_MT_WB | VMX_EPTP_PWL_4 |
	       (mirror_machine.accessed ? VMX_EPTP_AD_ENABLE_BIT : 0);
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

/* Finds the process's address of a guest-physical one; false if the granule has none. */
bool mirror_address(struct mirror *m, u64 gpa, u64 *address)
{
	return granules_to_address(&m->granules, gpa, address);
}

/**
 * mirror_init() - learn about the machine
 * @accessed_dirty: EPT has accessed and dirty bits
 * @large_1g:	EPT has pages of 1 GB; every EPT here has pages of 2 MB
 * @address_bits: width of a guest-physical address in bits, 36 or more
 */
void mirror_init(bool accessed_dirty, bool large_1g, unsigned int address_bits)
{
	walk_init();
	mirror_machine.accessed = accessed_dirty;
	mirror_machine.max_level = large_1g ? 3 : 2;
	mirror_machine.split_exec = boot_cpu_has_bug(X86_BUG_ITLB_MULTIHIT);
	/* There are at most those of the whole process, and granule 0, which is not used. */
	mirror_machine.granules = address_bits > PROCESS_BITS ?
		BIT(PROCESS_BITS - GRANULE_SHIFT) + 1 : BIT(address_bits - GRANULE_SHIFT);
}

/* Returns dune_info.granules; 0 without mirrors. */
unsigned int mirror_granules(void)
{
	return mirror_machine.granules;
}
