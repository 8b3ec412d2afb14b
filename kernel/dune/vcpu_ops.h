/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One table for each vendor with the functions for vCPUs that the common code calls;
 * vcpu_ops.c chooses the table that fits the processor. The functions that a vendor calls are
 * in exit.h and hypercall.h, and at load second_level_use_mirror(). Both sides use
 * struct dune_vcpu (vcpu.h). A vendor knows processors, not processes: no vendor's code looks at
 * a file or a memory map, nor at a task, with one exception: a thread that waits for its registers
 * (vmx_wait_for_regs()) stops when it has a fatal signal. Turning virtualization on is another
 * contract, virt/internal.h.
 */
#ifndef DUNE_VCPU_OPS_H
#define DUNE_VCPU_OPS_H

#include <linux/static_call.h>
#include <linux/types.h>

struct dune_state;
struct dune_vcpu;

/**
 * struct vcpu_ops - what a vendor does for vCPUs; a function may be NULL only if its line
 * allows it
 * @vendor:	dune_info.vendor
 * @efer:	a guest's EFER
 * @needs_put: @put is needed also while KVM is not loaded
 *
 * The module:
 * @init:	report with one pr_err() line what a guest needs and this processor lacks,
 *		and return -ENODEV or -EOPNOTSUPP; allocate what all vCPUs share, and
 *		return 0 or -ENOMEM
 * @cleanup:	free what @init allocated; also after @init has failed
 * @cpu_off:	for virt_start(). May be NULL
 *
 * A vCPU, in process context:
 * @create:	make the hardware part; returns 0 or -ENOMEM
 * @destroy:	the opposite of @create
 * @set_root:	the second level's root: nCR3 or the EPT pointer
 * @get_state:	DUNE_GET_STATE: all but the general registers. Returns 0, or -EAGAIN if
 *		virtualization is off on this CPU or the CPU refuses to turn it on, so that
 *		the state cannot be read. Afterwards no other CPU than the last entry's holds
 *		anything of the vCPU
 * @set_state:	the same for DUNE_SET_STATE
 * @forbid:	RDTSC (@notsc) and CPUID (@nocpuid) are forbidden to the thread, or allowed
 *		again
 * @load_regs:	copy registers from dune_run.regs to the hardware part, when a run begins. A run
 *		that resumes the last one, and has no interrupt, does not call it (run_vcpu())
 * @store_regs:	copy them back
 * @leave_cpu:	the thread has come to another CPU than the last entry's: take back
 *		what that CPU still holds. May be NULL
 *
 * A vCPU, with interrupts off:
 * @load:	the thread has been off the CPU since the last entry, and may be on
 *		another one (@migrated), or virtualization has changed on some CPU: save the
 *		host's state, unless it is still saved, and give the vCPU a TLB tag that is
 *		valid here, if its own is not. @enter always follows, and interrupts stay
 *		off until then
 * @put:	the thread is about to be switched away from, or to leave DUNE_RUN: undo
 *		what @load and @enter left changed. The hardware part keeps the guest's registers
 * @enter:	into the guest and back; @flush: flush the vCPU's TLB tag first. On
 *		return every register that the kernel relies on has the host's value
 *		again, except those that @put restores. Returns whether an interrupt of the
 *		host, which is still pending, ended the guest
 *
 * A vCPU, with interrupts on again:
 * @handle_exit: returns 0 to enter the guest again, or the DUNE_EXIT_* for user mode. The
 *		function itself handles only hypercalls, which are the hot path, and calls
 *		another one for all other exits: so the compiler saves no registers for those.
 *		A hypercall never causes an exit while an event is delivered, so only the
 *		other function looks for an event whose delivery was interrupted. Both
 *		vendors' functions are notrace, because function tracing would cost one NOP
 *		more in each call, and the path has tracepoints
 * @raise_fault: for a nested page fault, in @handle_exit: raises #PF in the guest, with @address in
 *		CR2 and an error code of @error and U/S. Returns false, and raises nothing, if the
 *		fault came while an event was being delivered: that event comes first
 */
struct vcpu_ops {
	u32 vendor;
	u64 efer;
	bool needs_put;

	int (*init)(void);
	void (*cleanup)(void);
	void (*cpu_off)(void);

	int (*create)(struct dune_vcpu *vcpu);
	void (*destroy)(struct dune_vcpu *vcpu);
	void (*set_root)(struct dune_vcpu *vcpu, u64 root);
	int (*get_state)(struct dune_vcpu *vcpu, struct dune_state *state);
	void (*set_state)(struct dune_vcpu *vcpu, const struct dune_state *state);
	void (*forbid)(struct dune_vcpu *vcpu, bool notsc, bool nocpuid);
	void (*load_regs)(struct dune_vcpu *vcpu);
	void (*store_regs)(struct dune_vcpu *vcpu);
	void (*leave_cpu)(struct dune_vcpu *vcpu);

	void (*load)(struct dune_vcpu *vcpu, bool migrated);
	void (*put)(struct dune_vcpu *vcpu);
	bool (*enter)(struct dune_vcpu *vcpu, bool flush);

	int (*handle_exit)(struct dune_vcpu *vcpu);
	bool (*raise_fault)(struct dune_vcpu *vcpu, u64 address, u32 error);
};

extern const struct vcpu_ops svm_vcpu_ops;
extern const struct vcpu_ops vmx_vcpu_ops;

/* This processor's table; set by vcpu_ops_init(), after virt_init(). */
extern const struct vcpu_ops *vcpu_ops;

/* vcpu_ops_init() after virt_init(); vcpu_ops_cleanup() is its opposite. May sleep. */
int vcpu_ops_init(void);
void vcpu_ops_cleanup(void);

/* The run loop calls the same functions by these, without an indirect call. */
DECLARE_STATIC_CALL(vcpu_load_regs, *((struct vcpu_ops *)0)->load_regs);
DECLARE_STATIC_CALL(vcpu_store_regs, *((struct vcpu_ops *)0)->store_regs);
DECLARE_STATIC_CALL(vcpu_load, *((struct vcpu_ops *)0)->load);
DECLARE_STATIC_CALL(vcpu_enter, *((struct vcpu_ops *)0)->enter);
DECLARE_STATIC_CALL(vcpu_handle_exit, *((struct vcpu_ops *)0)->handle_exit);

#endif /* DUNE_VCPU_OPS_H */
