// SPDX-License-Identifier: GPL-2.0-only
/*
 * The mirror: a process's page table in EPT's format (SDM vol. 3, 29.3), made on
 * faults and dropped when the kernel takes something back.
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
#include <asm/pgtable.h>

#include "dune/memory/mirror_internal.h"
#include "dune/memory/walk.h"

struct mirror_machine mirror_machine __ro_after_init;

/* Tables that one fill may need. */
#define SPARES_NEEDED	(EPT_ROOT_LEVEL - 1)

/* ---- making an entry ---- */

static int get_spares(struct mirror *m)
{
	while (READ_ONCE(m->nr_spares) < SPARES_NEEDED) {
		struct page *page = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);

		if (!page)
			return -ENOMEM;
		set_page_private(page, 0);
		spin_lock(&m->lock);
		list_add(&page->lru, &m->spares);
		m->nr_spares++;
		spin_unlock(&m->lock);
	}
	return 0;
}

static u64 *take_spare(struct mirror *m)
{
	struct page *page = list_first_entry(&m->spares, struct page, lru);

	list_del(&page->lru);
	m->nr_spares--;
	return page_address(page);
}

/*
 * Returns the level of the entry: as large as the process's page, unless the processor cannot
 * have it or must not.
 */
static int entry_level(struct mirror *m, u64 guest, const struct leaf *leaf,
		       u32 flags)
{
	int level = min(leaf->level, mirror_machine.max_level);
	int at;

	if (!mirror_machine.split_exec)
		return level;
	if (flags & DUNE_FAULT_EXEC)
		return 1;
	/* A page that was split for execution stays split. */
	for (; level > 1; level--) {
		u64 entry = *mirror_find_slot(m, guest, level, &at);

		if (!entry || is_leaf(entry, at))
			break;
	}
	return level;
}

/* @level: the leaf's or a lower one. */
static u64 make_entry(const struct leaf *leaf, u64 address, int level)
{
	u64 mask = level_span(leaf->level) - 1;
	u64 frame = (leaf->entry & PTE_PFN_MASK & ~mask) | (address & mask);
	u64 entry = (frame & ~(level_span(level) - 1)) | VMX_EPT_IPAT_BIT | EPT_USED |
		    walk_rights(leaf->entry, leaf->level, leaf->denied);

	if (level == 1)
		return entry;
	if (mirror_machine.split_exec)
		entry &= ~VMX_EPT_EXECUTABLE_MASK;
	return entry | EPT_LARGE;
}

/*
 * Returns whether rights can be added to @old, which is for the same page as @entry. If @old
 * is for another page, a notifier call was missed, which is a bug: warn, and let the
 * caller drop @old.
 */
static bool may_extend(u64 old, u64 entry)
{
	return !WARN_ON_ONCE((old ^ entry) & ~(EPT_RIGHTS | EPT_USED));
}

/*
 * The lock is held, and there are SPARES_NEEDED spares. A table or a page of another size
 * in the way is dropped, so that all vCPUs flush, before its place is used: a TLB must
 * never have a page in two sizes. Returns the slot of the entry.
 *
 * A right that the old entry has is kept: if the process had lost it, the entry would
 * have been dropped. The process may have got it after our walk, which no notifier
 * announces, and another vCPU has seen it.
 */
static u64 *install(struct mirror *m, u64 guest, int level, u64 entry)
{
	int at;
	u64 *slot = mirror_find_slot(m, guest, level, &at);
	bool same_size = at == level && is_leaf(*slot, level);

	lockdep_assert_held(&m->lock);
	if (same_size && *slot && may_extend(*slot, entry)) {
		entry |= *slot & EPT_RIGHTS;
	} else if (*slot) {
		u64 start = guest & ~(level_span(level) - 1);

		mirror_drop(m, start, start + level_span(level));
		slot = mirror_find_slot(m, guest, level, &at);
	}
	for (; at > level; at--) {
		u64 *table = take_spare(m);

		set_entry(slot, __pa(table) | EPT_RIGHTS | VMX_EPT_ACCESS_BIT);
		slot = slot_of(table, guest, at - 1);
	}
	set_entry(slot, entry);
	return slot;
}

/* The lock is held. Entries that exist already are left as they are. */
static void install_around(struct mirror *m, u64 *slot, const u64 *around)
{
	u64 *first = PTR_ALIGN_DOWN(slot, AROUND * sizeof(u64));
	int i;

	lockdep_assert_held(&m->lock);
	for (i = 0; i < AROUND; i++)
		if (around[i] && !first[i])
			set_entry(&first[i], around[i]);
}

/*
 * Has the kernel taken anything back since @sequence was read, or is it doing so now in the
 * @size bytes around @address? The lock is held.
 */
static bool is_outdated(const struct mirror *m, unsigned long sequence,
			u64 address, u64 size)
{
	u64 start = address & ~(size - 1);

	lockdep_assert_held(&m->lock);
	if (m->sequence != sequence)
		return true;
	return m->in_progress && m->start < start + size && m->end > start;
}

static u64 rights_for(u32 flags)
{
	return VMX_EPT_READABLE_MASK |
	       (flags & DUNE_FAULT_WRITE ? VMX_EPT_WRITABLE_MASK : 0) |
	       (flags & DUNE_FAULT_EXEC ? VMX_EPT_EXECUTABLE_MASK : 0);
}

/**
 * mirror_fill() - make the entry for an address
 * @m:		the mirror of current->mm
 * @address:	of the process, in a granule
 * @flags:	DUNE_FAULT_WRITE and _EXEC: what the guest wants to do there
 * @around:	make the entries of pages around it as well
 *
 * At most faults the process has the page already, so this is called first. Only if
 * it fails is the process's fault handler called, and then this again.
 *
 * Context: process, interrupts on, may sleep.
 * Return: 0 to enter the guest again: the entry was made, or the kernel has taken
 * something back meanwhile, and the fault comes again. -EFAULT: the process's page table
 * does not allow the access. -ENOMEM: no memory for tables.
 */
int mirror_fill(struct mirror *m, u64 address, u32 flags, bool around)
{
	unsigned long sequence;
	u64 near[AROUND];
	struct leaf leaf;
	int level, err;
	bool found;
	u64 guest;

	if (address >= TASK_SIZE_MAX ||
	    !granules_to_guest(&m->granules, address, &guest))
		return -EFAULT;
	err = get_spares(m);
	if (err)
		return err;
	/* Before the walk; pairs with mirror_invalidate_end(). */
	sequence = smp_load_acquire(&m->sequence);
	local_irq_disable();
	found = walk_page_table(m->notifier.mm, address, &leaf);
	around &= found && leaf.level == 1;
	if (around)
		walk_around(&leaf, near);
	local_irq_enable();
	if (!found || rights_for(flags) &
		      ~walk_rights(leaf.entry, leaf.level, leaf.denied))
		return -EFAULT;
	spin_lock(&m->lock);
	level = entry_level(m, guest, &leaf, flags);
	if (!is_outdated(m, sequence, address, level_span(level)) &&
	    m->nr_spares >= SPARES_NEEDED) {
		u64 *slot = install(m, guest, level,
				    make_entry(&leaf, address, level));

		if (around &&
		    !is_outdated(m, sequence, address, AROUND * PAGE_SIZE))
			install_around(m, slot, near);
	}
	spin_unlock(&m->lock);
	return 0;
}

/* ---- vCPUs ---- */

int mirror_add_vcpu(struct mirror *m, struct kick_vcpu *vcpu)
{
	return kick_add(&m->kicks, vcpu);
}

/* The vCPU will not run any more. Called in process context; may sleep. */
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

/* ---- mirrors ---- */

/* Must not sleep. All entries were dropped with the last vCPU. */
void mirror_free(struct mmu_notifier *notifier)
{
	struct mirror *m = of_notifier(notifier);

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
	struct mmu_notifier *notifier = mmu_notifier_get_locked(&mirror_ops, mm);

	return IS_ERR(notifier) ? ERR_CAST(notifier) : of_notifier(notifier);
}

/* The caller has no vCPU left in the mirror, which is freed after a grace period. */
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
 * @guest:	guest-physical, see struct dune_granule
 * @address:	of the process
 *
 * Context: process, may sleep.
 * Return: 0, -EINVAL, -EEXIST or -ENOMEM.
 */
int mirror_map_granule(struct mirror *m, u64 guest, u64 address)
{
	if ((guest | address) & GRANULE_MASK || !guest ||
	    guest >> GRANULE_SHIFT >= mirror_machine.granules || address >> PROCESS_BITS)
		return -EINVAL;
	return granules_map(&m->granules, guest, address);
}

/* Finds the process's address of a guest-physical one; false if the granule has none. */
bool mirror_address(struct mirror *m, u64 guest, u64 *address)
{
	return granules_to_address(&m->granules, guest, address);
}

/* ---- the module ---- */

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
	/* At most those of the whole process, and granule 0, which is not used. */
	mirror_machine.granules = address_bits > PROCESS_BITS ?
		BIT(PROCESS_BITS - GRANULE_SHIFT) + 1 : BIT(address_bits - GRANULE_SHIFT);
}

/* Returns dune_info.granules; 0 without mirrors. */
unsigned int mirror_granules(void)
{
	return mirror_machine.granules;
}
