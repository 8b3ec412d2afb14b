/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A kick makes the vCPUs of a process leave the guest. It is for a change of memory that
 * the kernel announces by a notifier, and not by an interrupt of its own.
 *
 * The side that changes the memory first advances a count (mirror.generation,
 * shootdown.generation), then looks which vCPUs are marked to be in the guest, and interrupts
 * their CPUs. A vCPU first marks itself, then looks at the count. Both have a full barrier
 * in between, so at least one of them sees the other. A marked vCPU has interrupts off
 * until it is in the guest, and there an interrupt is an exit. So when its CPU has
 * answered, the vCPU has left the guest, and it looks at the count before it enters again.
 */
#ifndef DUNE_MEMORY_KICK_H
#define DUNE_MEMORY_KICK_H

#include <linux/cpumask.h>
#include <linux/list.h>
#include <linux/smp.h>
#include <linux/spinlock.h>

/*
 * A kick looks at all vCPUs of a process with preemption off, so their number is limited: to
 * the largest that the kernel can be configured to allow a VM of KVM (CONFIG_KVM_MAX_NR_VCPUS).
 */
#define KICK_VCPUS	4096

/**
 * struct kick_list - the vCPUs of one mm
 * @lock:	protects all that follows. Never taken with interrupts off: its holder
 *		waits for other CPUs to answer.
 * @vcpus:	all vCPUs that could be in the guest
 * @count:	their number, KICK_VCPUS at most
 * @cpus:	the CPUs that a kick interrupts, during the kick
 */
struct kick_list {
	raw_spinlock_t lock;
	struct list_head vcpus;
	unsigned int count;
	cpumask_var_t cpus;
};

/**
 * struct kick_vcpu - one vCPU in a struct kick_list
 * @link:	in the list, under its lock
 * @in_guest:	CPU on which the vCPU may be in the guest, or -1. Written by
 *		its thread with interrupts off, read by a kick.
 */
struct kick_vcpu {
	struct list_head link;
	int in_guest;
};

int kick_list_init(struct kick_list *list);
void kick_list_destroy(struct kick_list *list);
int kick_add(struct kick_list *list, struct kick_vcpu *vcpu);
void kick_remove(struct kick_list *list, struct kick_vcpu *vcpu);
void kick_all(struct kick_list *list, u64 tlb_gen);
void kick_cleanup(void);

/* Marks the vCPU to be in the guest. Interrupts are off, from here until the guest was left. */
static inline void kick_enter(struct kick_vcpu *vcpu)
{
	/* Pairs with kick_all(). */
	smp_store_mb(vcpu->in_guest, smp_processor_id());
}

/*
 * Takes the mark away; the guest was left. The later this is called, the more vCPUs are
 * interrupted without need. Interrupts are off.
 */
static inline void kick_leave(struct kick_vcpu *vcpu)
{
	/* A kick that reads -1 may let the kernel free what the guest has used. */
	smp_store_release(&vcpu->in_guest, -1);
}

#endif /* DUNE_MEMORY_KICK_H */
