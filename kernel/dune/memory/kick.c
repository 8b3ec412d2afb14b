// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupting the vCPUs that are in the guest: see kick.h.
 */
#include <linux/gfp.h>
#include <linux/lockdep.h>
#include <linux/rcupdate.h>
#include <linux/wait_bit.h>

#include "dune/memory/kick.h"
#include "dune/trace/trace.h"

/*
 * Lists that were made and not destroyed. Their owners are freed by callbacks of
 * the kernel, some time after the last file was closed (mmu_notifier_put()).
 */
static atomic_t kick_lists;

/* May sleep. Returns 0 or -ENOMEM; kick_list_destroy() must follow in either case. */
int kick_list_init(struct kick_list *list)
{
	atomic_inc(&kick_lists);
	raw_spin_lock_init(&list->lock);
	INIT_LIST_HEAD(&list->vcpus);
	list->count = 0;
	if (!zalloc_cpumask_var(&list->cpus, GFP_KERNEL_ACCOUNT))
		return -ENOMEM;
	return 0;
}

/*
 * Frees what kick_list_init() allocated, also if that failed. @list must be empty. Callable in
 * any context.
 */
void kick_list_destroy(struct kick_list *list)
{
	free_cpumask_var(list->cpus);
	if (atomic_dec_and_test(&kick_lists))
		wake_up_var(&kick_lists);
}

/*
 * Waits until no list is left. Called before the module is unloaded; may sleep.
 *
 * mmu_notifier_synchronize() waits for readers, not for callbacks, of which each
 * CPU may have a queue (SRCU, by default with 128 CPUs). A callback runs with
 * softirqs off, which a grace period of RCU waits for: after that the last callback
 * has left the module.
 */
void kick_cleanup(void)
{
	wait_var_event(&kick_lists, !atomic_read(&kick_lists));
	synchronize_rcu();
}

/* Returns 0, or -ENOSPC if the list has KICK_VCPUS already. Called in process context. */
int kick_add(struct kick_list *list, struct kick_vcpu *vcpu)
{
	int err = 0;

	vcpu->in_guest = -1;
	raw_spin_lock(&list->lock);
	if (list->count < KICK_VCPUS) {
		list->count++;
		list_add(&vcpu->link, &list->vcpus);
	} else {
		err = -ENOSPC;
	}
	raw_spin_unlock(&list->lock);
	return err;
}

/* Takes @vcpu, which must not run again, off the list. Called in process context. */
void kick_remove(struct kick_list *list, struct kick_vcpu *vcpu)
{
	raw_spin_lock(&list->lock);
	list_del(&vcpu->link);
	list->count--;
	raw_spin_unlock(&list->lock);
}

/* The interrupt by which this is called has already made the guest leave. */
static void leave_guest(void *unused)
{
}

/**
 * kick_all() - wait until every vCPU that was in the guest has left it
 * @list:	of the vCPUs
 * @tlb_gen:	the present count: a vCPU that entered the guest before the change did so with
 *		a smaller one. For the trace.
 *
 * To be called after the change and after its count was advanced. A vCPU that is marked
 * to be on this CPU is not in the guest.
 *
 * Context: any with interrupts on; does not sleep.
 */
void kick_all(struct kick_list *list, u64 tlb_gen)
{
	struct kick_vcpu *vcpu;

	lockdep_assert_irqs_enabled();
	smp_mb();	/* pairs with kick_enter() */
	raw_spin_lock(&list->lock);
	cpumask_clear(list->cpus);
	list_for_each_entry(vcpu, &list->vcpus, link) {
		int cpu = READ_ONCE(vcpu->in_guest);

		if (cpu >= 0)
			__cpumask_set_cpu(cpu, list->cpus);
	}
	trace_dune_kick(cpumask_weight(list->cpus), tlb_gen);
	smp_call_function_many(list->cpus, leave_guest, NULL, true);
	raw_spin_unlock(&list->lock);
}
