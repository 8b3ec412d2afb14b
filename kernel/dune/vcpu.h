/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A vCPU: a virtual processor of one thread. It is made in vcpu.c; the operations on its file are
 * in vcpu_file.c, its run loop is in run.c, and the vendor's part is declared in vcpu_ops.h.
 */
#ifndef DUNE_VCPU_H
#define DUNE_VCPU_H

#include <linux/dune.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>

#include "dune/memory/second_level.h"
#include "dune/vm.h"

struct file;
struct task_struct;
struct vcpu_hw;

/* The registers of a system call, as in struct pt_regs. */
struct call_registers {
	unsigned long di, si, dx, r10, r8, r9, orig_ax;
};

/**
 * struct dune_vcpu - a virtual processor of one thread
 * @vm:		its address space
 * @task:	the only thread that may run it; a counted reference, so that no
 *		later task can be mistaken for it. NULL while it is unborn (child.c)
 * @child:	the file of an unborn vCPU, for the next child of @task; or NULL. Changed by
 *		xchg(), since @task and a child that shares its memory may take it
 * @run:	the page shared with user mode. Everything in it can change at any
 *		time: read a value once, then check it, then use it.
 * @hw:		the vendor's part
 * @second_level: leads to the process's memory and to private memory
 * @notifier:	tells the vendor when @task is switched away from in a run
 * @frame:	arguments of the system call that is being dispatched
 * @ioctl:	the registers of the run's ioctl or lseek() that those of a call have replaced
 *		in task_pt_regs(), if @ioctl_saved (call_filtered() in hypercall.c)
 * @epoch:	run_epoch() when the host's state was last saved
 * @cpu:	CPU of the last entry, the only one that may still hold something of the
 *		vCPU; -1: none does, as before the first entry and after @leave_cpu
 * @stub:	address of the stub to which it is bound (stub.c, alone.c), or 0; once set, it never
 *		changes
 * @fault_page:	guest-physical address of the last nested page fault, to recognize a
 *		repeated one
 * @forbidden:	_TIF_NOTSC and _TIF_NOCPUID of @task when the vendor was last told of them
 * @pkru:	of @task at the start of this run, or of the last one
 * @irq:	vector of an interrupt for the guest at the start of this run, or 0
 * @signal_vector: vector of the interrupt for a signal, with @stub
 * @calling:	with @stub: the guest waits for the result of the call in @frame, which the
 *		stub makes
 * @smap:	SMEP and SMAP are in its CR4 (DUNE_VCPU_SMAP); never changes
 * @slow:	user mode makes every system call of this run
 * @notified:	@notifier is registered
 * @ioctl_saved: @ioctl is valid; only during a run
 * @mapped:	@run was mapped or is private memory, and cannot be mapped again: a descriptor
 *		that gets out of the runtime's hands gives no access to it
 * @running:	a run is on the stack of @task: no second one may nest
 * @resumable:	the last run ended for a call after which the next one may resume it
 *		(run_vcpu())
 * @resumed:	this run has resumed the last one, and has not loaded the vCPU yet
 *
 * Only @task changes it, in mmap(), runs and ioctls, so there is no lock. An unborn vCPU is changed
 * by the side that has taken it from where it was stored.
 * @second_level.kick has rules of its own (kick.h). The members that the run loop needs with
 * interrupts off are used only there. Any task may drop the last reference; no thread uses
 * the vCPU then.
 */
struct dune_vcpu {
	struct dune_vm *vm;
	struct task_struct *task;
	struct file *child;
	struct dune_run *run;
	struct vcpu_hw *hw;
	struct second_level_vcpu second_level;
	struct preempt_notifier notifier;
	struct pt_regs frame;
	struct call_registers ioctl;
	u64 epoch;
	unsigned long stub;
	u64 fault_page;
	unsigned long forbidden;
	int cpu;
	u32 pkru;
	u8 irq;
	u8 signal_vector;
	bool calling;
	bool smap;
	bool slow;
	bool notified;
	bool ioctl_saved;
	bool mapped;
	bool running;
	bool resumable;
	bool resumed;
};

/* The flags of DUNE_CREATE_VCPU and DUNE_RENEW_VCPU that are known. */
#define DUNE_VCPU_FLAGS	DUNE_VCPU_SMAP

/* vcpu_file.c. vcpu.c makes the file with these operations, and recognizes it by them. */
extern const struct file_operations vcpu_fops;

/* vcpu.c */
int vcpu_create(struct dune_vm *vm, u32 flags);
struct dune_vcpu *vcpu_alloc(struct dune_vm *vm, bool smap, struct page *run);
int vcpu_join(struct dune_vcpu *vcpu);
void vcpu_free(struct dune_vcpu *vcpu);
struct file *vcpu_make_file(struct dune_vcpu *vcpu);
struct file *vcpu_open(struct dune_vm *vm, u32 flags);
struct dune_vcpu *vcpu_of(const struct file *file);
int vcpu_replace_file(unsigned int fd, struct file *old, struct file *file);

/* run.c: what is called when @task is switched; the run loop. */
extern struct preempt_ops run_preempt_ops;
void run_init(void);
long run_vcpu(struct dune_vcpu *vcpu, bool resume);

/* Returns whether @vcpu belongs to the calling thread, and to the process that it is in. */
static inline bool vcpu_is_mine(const struct dune_vcpu *vcpu)
{
	return current == vcpu->task && current->mm == vcpu->vm->mm;
}

/*
 * Counts an event for user mode. Called by the vCPU's thread. User mode can write to the counter,
 * so the kernel never uses its value.
 */
static inline void vcpu_count(struct dune_vcpu *vcpu, enum dune_counter counter)
{
	vcpu->run->counters[counter]++;
}

#endif /* DUNE_VCPU_H */
