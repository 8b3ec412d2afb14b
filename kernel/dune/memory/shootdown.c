// SPDX-License-Identifier: GPL-2.0-only
/*
 * TLB shootdown on machines on which the kernel tells other CPUs without the interrupt on
 * which second_level_enter() relies:
 *  - by broadcast: AMD's INVLPGB, which Linux uses since 6.15 for processes that run
 *    on several CPUs. INVLPGB does not reach the guest's tag (APM vol. 3, INVLPGB: host
 *    and guest ASIDs are separate);
 *  - under a hypervisor, which flushes other processors at a hypercall (Hyper-V,
 *    hyperv_flush_tlb_multi()), or later, when it runs them again (KVM,
 *    kvm_flush_tlb_multi()). The hypervisor knows nothing of the guest's tag, and
 *    resumes the guest at the point where it was.
 *
 * But each such flush has a notifier call for TLBs that do not belong to a CPU, after
 * the entries were changed and before a page is freed (flush_tlb_mm_range() and
 * arch_tlbbatch_add_pending(); before 6.6 tlb_flush_mmu_tlbonly(), the *_notify() macros and
 * each end of an invalidation). shootdown_invalidate() then advances a count of this file's
 * own, so that the next entry flushes, and kicks the vCPUs. context.tlb_gen would not do: the
 * kernel sometimes advances it only after this call (fork() before 6.6: after the calls for all
 * mappings).
 *
 * The end of a change of rights at address 0 is not announced (mirror_settle()). That makes no
 * difference here, since the flush after such a change makes the call itself.
 */
#include <linux/lockdep.h>
#include <linux/mm_types.h>
#include <linux/mmu_notifier.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>

#include "dune/compat.h"
#include "dune/memory/shootdown.h"
#include "virt/symbol.h"

static bool notify_flushes;
module_param(notify_flushes, bool, 0444);
MODULE_PARM_DESC(notify_flushes, "kick guests at each TLB flush also where the kernel does so itself (default off)");

static struct shootdown *shootdown_of(struct mmu_notifier *notifier)
{
	return container_of(notifier, struct shootdown, notifier);
}

/*
 * The kernel flushes TLBs of @mm. Called with interrupts on, perhaps under a page table's lock;
 * does not sleep.
 */
static void shootdown_invalidate(struct mmu_notifier *notifier,
				 struct mm_struct *mm, unsigned long start,
				 unsigned long end)
{
	struct shootdown *shootdown = shootdown_of(notifier);
	u64 generation = atomic64_inc_return(&shootdown->generation);

	kick_all(&shootdown->kicks, generation + atomic64_read(&mm->context.tlb_gen));
}

static void shootdown_free(struct mmu_notifier *notifier)
{
	struct shootdown *shootdown = shootdown_of(notifier);

	kick_list_destroy(&shootdown->kicks);
	kfree(shootdown);
}

static struct mmu_notifier *shootdown_alloc(struct mm_struct *mm)
{
	struct shootdown *shootdown = kzalloc(sizeof(*shootdown), GFP_KERNEL_ACCOUNT);

	if (!shootdown)
		return ERR_PTR(-ENOMEM);
	if (kick_list_init(&shootdown->kicks)) {
		shootdown_free(&shootdown->notifier);
		return ERR_PTR(-ENOMEM);
	}
	return &shootdown->notifier;
}

static const struct mmu_notifier_ops shootdown_ops = {
	.arch_invalidate_secondary_tlbs = shootdown_invalidate,
	.alloc_notifier = shootdown_alloc,
	.free_notifier = shootdown_free,
};

/*
 * Returns whether the kernel of this machine flushes TLBs without interrupts. Called at load;
 * may sleep. If native_flush_tlb_multi() is not found, the comparison fails and vCPUs are
 * kicked, which is the safe side.
 */
bool shootdown_is_needed(void)
{
	unsigned long native = symbol_find("native_flush_tlb_multi");

	return kernel_flushes_by_broadcast() ||
	       kernel_flushes_by_hypervisor(native) || notify_flushes;
}

/**
 * shootdown_get() - the struct shootdown of a process
 * @mm:		current->mm
 * @found:	returns it, counted, if there is no error
 *
 * The first one of an mm costs a pass over its mappings (mm_take_all_locks()).
 *
 * Context: process, in a system call, with mmap_lock held for writing; may sleep.
 * Return: 0, -ENOMEM, or -EINTR for a signal.
 */
int shootdown_get(struct mm_struct *mm, struct shootdown **found)
{
	struct mmu_notifier *notifier;

	lockdep_assert_held_write(&mm->mmap_lock);
	notifier = mmu_notifier_get_locked(&shootdown_ops, mm);
	if (IS_ERR(notifier))
		return PTR_ERR(notifier);
	*found = shootdown_of(notifier);
	return 0;
}

/*
 * Drops a reference. The last one frees @shootdown, after a grace period. Called in process
 * context.
 */
void shootdown_put(struct shootdown *shootdown)
{
	mmu_notifier_put(&shootdown->notifier);
}
