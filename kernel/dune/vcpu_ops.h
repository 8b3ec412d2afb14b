/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The whole contract between a vCPU's common code and its vendor's: one table for each
 * vendor, of which vcpu_ops.c chooses the one that fits the processor. A vendor
 * knows processors, not processes: no vendor's code looks at a task, a
 * file or a memory map. How virtualization is turned on is another contract, virt/virt.h.
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
 * @needs_put: @vcpu_put is needed also while KVM is not loaded
 *
 * The module:
 * @init:	report with one pr_err() line what a guest needs and this processor lacks,
 *		and return -ENODEV or -EOPNOTSUPP; allocate what all vCPUs share
 * @cleanup:	free what @init allocated; also after @init has failed
 * @cpu_off:	for virt_start(). May be NULL
 *
 * A vCPU, in process context:
 * @create:	make the hardware part
 * @destroy:	the opposite of @create
 * @set_root:	the second level's root: nCR3 or the EPT pointer
 * @get_state:	DUNE_GET_STATE: all but the general registers. Returns 0, or -EAGAIN if
 *		virtualization is off on this CPU, so that the state cannot be read
 * @set_state:	the same for DUNE_SET_STATE
 * @filter:	RDTSC and CPUID are forbidden to the thread, or allowed again
 * @load_regs:	copy registers from dune_run.regs to the hardware part, once for each
 *		DUNE_RUN
 * @store_regs:	copy them back
 * @leave_cpu:	the thread has come to another CPU than the last entry's: take back
 *		what that CPU still holds. May be NULL
 *
 * A vCPU, with interrupts off:
 * @vcpu_load:	the thread has been off the CPU since the last entry, and may be on
 *		another one (@migrated), or virtualization has changed here: save the
 *		host's state, take a new TLB tag. @enter always follows, and
 *		interrupts stay off until then
 * @vcpu_put:	the thread is about to be switched away from, or to leave DUNE_RUN: undo
 *		what @vcpu_load and @enter left changed
 * @enter:	into the guest and back; @flush: flush the vCPU's TLB tag first. On
 *		return every register that the kernel relies on has the host's value
 *		again, except those that @vcpu_put restores. Returns whether an
 *		interrupt of the host, which is still pending, ended the guest
 *
 * A vCPU, with interrupts on again:
 * @handle_exit: returns 0 to enter the guest again, or the DUNE_EXIT_* for user mode
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
	void (*set_state)(struct dune_vcpu *vcpu,
			  const struct dune_state *state);
	void (*filter)(struct dune_vcpu *vcpu, bool notsc, bool nocpuid);
	void (*load_regs)(struct dune_vcpu *vcpu);
	void (*store_regs)(struct dune_vcpu *vcpu);
	void (*leave_cpu)(struct dune_vcpu *vcpu);

	void (*vcpu_load)(struct dune_vcpu *vcpu, bool migrated);
	void (*vcpu_put)(struct dune_vcpu *vcpu);
	bool (*enter)(struct dune_vcpu *vcpu, bool flush);

	int (*handle_exit)(struct dune_vcpu *vcpu);
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
DECLARE_STATIC_CALL(vcpu_load, *((struct vcpu_ops *)0)->vcpu_load);
DECLARE_STATIC_CALL(vcpu_enter, *((struct vcpu_ops *)0)->enter);
DECLARE_STATIC_CALL(vcpu_handle_exit, *((struct vcpu_ops *)0)->handle_exit);

#endif /* DUNE_VCPU_OPS_H */
