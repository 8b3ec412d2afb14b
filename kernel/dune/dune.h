/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the common parts of the module share: an address space (vm.c), its
 * vCPUs (vcpu.c) and the handlers of their exits (fault.c, syscall.c).
 * What a vendor provides is in vendor.h; nothing here knows SVM.
 */
#ifndef DUNE_H
#define DUNE_H

#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/mm_types.h>
#include <linux/ptrace.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/dune.h>

#include "dune/memory/kick.h"
#include "dune/memory/mirror.h"
#include "dune/memory/root.h"

/**
 * struct dune_vm - an open /dev/dune: the address space of its opener
 * @kref:	one for the file, one for each vCPU
 * @mm:		held by mmgrab(): the structure stays, its pages may go. A
 *		vCPU runs only while current->mm is this, so the page table
 *		that the processor walks is always the live one.
 * @mirror:	where the second-level page table has a format of its own: the
 *		one that all address spaces of @mm share; else NULL
 * @shootdown:	where it is the page table itself, and the kernel flushes
 *		TLBs without interrupts; else NULL
 *
 * Never changes after open; needs no lock.
 */
struct dune_vm {
	struct kref kref;
	struct mm_struct *mm;
	struct mirror *mirror;
	struct shootdown *shootdown;
};

/* Set at load: where dune_vm.mirror is; where vCPUs are to be kicked. */
DECLARE_STATIC_KEY_FALSE(dune_mirrors);
DECLARE_STATIC_KEY_FALSE(dune_kicks);

/**
 * struct dune_vcpu - a virtual processor of one thread
 * @vm:		its address space
 * @task:	the only thread that may run it; a counted reference, so that
 *		no later task can be mistaken for it
 * @run:	the page shared with user mode. Everything in it can change at
 *		any time: read a value once, then check it, then use it.
 * @root:	where dune_vm.mirror is NULL: its second-level top level
 * @hw:		the vendor's part
 * @kick:	by which whoever changes its memory gets it out of the guest
 * @notifier:	tells the vendor when @task is switched away from in a run
 * @frame:	arguments of the system call being dispatched
 * @epoch:	vcpu_epoch() when the host's state was last saved
 * @tlb_gen:	mm->context.tlb_gen, or mirror_generation(), that the TLB tag is
 *		known to be clean for
 * @cpu:	CPU of the last entry, -1 before the first
 * @fault_page:	address of the last nested page fault, to see a repeated one
 * @filter:	_TIF_NOTSC and _TIF_NOCPUID of @task as the vendor knows them
 * @irq:	vector of an interrupt for the guest at the start of this run, or 0
 * @flush:	the TLB tag must be flushed at the next entry
 * @smap:	SMEP and SMAP are in its CR4 (DUNE_VCPU_SMAP); never changes
 * @slow:	this run sends every system call to the host half
 * @notified:	@notifier is registered
 * @mapped:	@run was mapped: never again, so that a descriptor that gets
 *		out of the runtime's hands leads nowhere
 * @running:	DUNE_RUN is on the stack of @task: no second one may nest
 *
 * Only @task changes it, in DUNE_RUN and the state calls, so there is no
 * lock; what the run loop needs with interrupts off is touched only there.
 */
struct dune_vcpu {
	struct dune_vm *vm;
	struct task_struct *task;
	struct dune_run *run;
	struct vcpu_hw *hw;
	struct root root;
	struct kick_vcpu kick;
	struct preempt_notifier notifier;
	struct pt_regs frame;
	u64 epoch;
	u64 tlb_gen;
	u64 fault_page;
	unsigned long filter;
	int cpu;
	u8 irq;
	bool flush;
	bool smap;
	bool slow;
	bool notified;
	bool mapped;
	bool running;
};

static inline void dune_count(struct dune_vcpu *vcpu, enum dune_counter which)
{
	vcpu->run->counters[which]++;
}

/* vm.c */
extern const struct file_operations dune_vm_fops;
struct dune_vm *dune_vm_new(void);
long dune_get_info(struct dune_info __user *argument);
void dune_vm_get(struct dune_vm *vm);
void dune_vm_put(struct dune_vm *vm);
int dune_vm_add_vcpu(struct dune_vm *vm, struct kick_vcpu *vcpu);
void dune_vm_remove_vcpu(struct dune_vm *vm, struct kick_vcpu *vcpu);

/* vcpu.c */
void dune_vcpu_init(void);
#define DUNE_VCPU_FLAGS	DUNE_VCPU_SMAP	/* the known ones */
int dune_vcpu_create(struct dune_vm *vm, u32 flags);

/* fault.c */
int dune_handle_fault(struct dune_vcpu *vcpu, u64 guest, u32 flags);

/* syscall.c */
void dune_syscall_init(void);
bool dune_syscall_is_fast(void);
int dune_handle_hypercall(struct dune_vcpu *vcpu);
int dune_leave_for_hypercall(struct dune_vcpu *vcpu);

/*
 * While an interrupt waits for the guest, a call that may sleep must not sleep
 * over a signal that the host half has already taken.
 */
static __always_inline int dune_hypercall(struct dune_vcpu *vcpu,
					  bool interrupt_waits)
{
	if (unlikely(interrupt_waits))
		return dune_leave_for_hypercall(vcpu);
	return dune_handle_hypercall(vcpu);
}

/* symbol.c */
unsigned long dune_find_function(const char *name);

/* Has static_call @call lead to the function, if there is one: returns whether. */
#define dune_bind(call, name) ({					\
	unsigned long address = dune_find_function(name);		\
									\
	if (address)							\
		static_call_update(call, (void *)address);		\
	!!address;							\
})

/* vendor.c */
void dune_bus_lock(unsigned long rip);

/* return_buffer.S */
void dune_fill_return_buffer(void);

/* kvm.c */
int dune_kvm_init(void);
void dune_kvm_exit(void);

/* cpu.c */
int dune_cpu_init(void);
void dune_cpu_exit(void);
void dune_cpu_set_beside(bool beside);
void dune_cpu_emergency(void);
void dune_machine_check(void);
/*
 * Advanced by each change of a CPU's virtualization, on that CPU, with interrupts
 * off: a run that the change has interrupted looks anew before its next entry.
 */
extern atomic64_t dune_host_epoch;
/*
 * Interrupts off. A CPU that goes off line or shuts down is disabled while
 * threads may still be on it: the run loop asks here after each change of its
 * epoch, and waits.
 */
DECLARE_PER_CPU(bool, dune_virt_enabled);

static inline bool dune_cpu_enabled(void)
{
	return __this_cpu_read(dune_virt_enabled);
}

#endif /* DUNE_H */
