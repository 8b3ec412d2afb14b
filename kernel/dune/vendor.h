/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The whole contract between the common code and a vendor's: one table for
 * each, of which vendor.c chooses the one that fits the processor. A vendor
 * knows processors, not processes: nothing behind this header looks at a
 * task, a file or a memory map.
 */
#ifndef DUNE_VENDOR_H
#define DUNE_VENDOR_H

#include <linux/jump_label.h>
#include <linux/static_call.h>
#include <linux/types.h>

struct dune_info;
struct dune_state;
struct dune_vcpu;

/**
 * struct vendor - what a vendor does; may be NULL only where that is said
 * @mirrors:	the second-level page table has a format of its own (mirror.c)
 *		and is not the kernel's page table of the process
 *
 * @puts_always: @put is needed also where no KVM is loaded
 * @shares:	@moved and @enter know dune_beside_kvm. Without it Dune and KVM
 *		exclude each other
 *
 * The machine:
 * @probe:	say with one pr_err() line what is missing, and return -ENODEV
 *		or -EOPNOTSUPP
 * @init:	allocate what all CPUs need; @exit is its mirror
 * @info:	fill in what user mode is told of the processor
 *
 * This CPU, interrupts off:
 * @cpu_enable:	turn virtualization on; -EBUSY where somebody else has
 * @cpu_disable: turn it off
 * @cpu_emergency: the same while the kernel crashes or reboots at once: any
 *		context, no lock, no memory of the module's to be kept
 * @cpu_forget:	nothing will enter here any more: leave nothing of ours in
 *		the CPU that entries beside KVM may have left. May be NULL
 *
 * A vCPU, in process context:
 * @create:	make the hardware part; @destroy is its mirror
 * @set_root:	the second-level root: nCR3 or EPTP
 * @get_state, @set_state: all but the general registers
 * @filter:	RDTSC and CPUID are forbidden to the thread, or not
 * @load, @store: registers between dune_run.regs and the hardware, once for
 *		each DUNE_RUN
 * @leave_cpu:	the thread has come to another CPU than the last entry's:
 *		take what that one still holds. May be NULL
 *
 * A vCPU, interrupts off:
 * @moved:	the thread has been off the CPU since the last entry, and may
 *		be on another one (@migrated), or virtualization has changed
 *		here: save the host's state, take a new TLB tag. @enter follows
 *		without fail, and interrupts stay off until then
 * @put:	the thread is about to be switched away from, or to leave
 *		DUNE_RUN: undo what @moved and @enter left changed
 * @enter:	into the guest and back. On return every register that the
 *		kernel relies on has the host's value again, but for what @put
 *		restores. Returns whether an interrupt of the host, which is
 *		still pending, ended the guest
 *
 * And with interrupts on again:
 * @handle_exit: returns 0 to enter the guest again, or the DUNE_EXIT_* for
 *		user mode
 */
struct vendor {
	bool mirrors;
	bool puts_always;
	bool shares;

	int (*probe)(void);
	int (*init)(void);
	void (*exit)(void);
	void (*info)(struct dune_info *info);

	int (*cpu_enable)(void);
	void (*cpu_disable)(void);
	void (*cpu_emergency)(void);
	void (*cpu_forget)(void);

	int (*create)(struct dune_vcpu *vcpu);
	void (*destroy)(struct dune_vcpu *vcpu);
	void (*set_root)(struct dune_vcpu *vcpu, u64 root);
	void (*get_state)(struct dune_vcpu *vcpu, struct dune_state *state);
	void (*set_state)(struct dune_vcpu *vcpu,
			  const struct dune_state *state);
	void (*filter)(struct dune_vcpu *vcpu, bool notsc, bool nocpuid);
	void (*load)(struct dune_vcpu *vcpu);
	void (*store)(struct dune_vcpu *vcpu);
	void (*leave_cpu)(struct dune_vcpu *vcpu);

	void (*moved)(struct dune_vcpu *vcpu, bool migrated);
	void (*put)(struct dune_vcpu *vcpu);
	bool (*enter)(struct dune_vcpu *vcpu, bool flush);

	int (*handle_exit)(struct dune_vcpu *vcpu);
};

/* What the vendors' tables say of an instruction. */
enum answer {
	ANSWER_GP = 1,	/* #GP(0) */
	ANSWER_UD,	/* #UD */
	ANSWER_EXIT,	/* @handle_exit has a case of its own */
};

struct vcpu_hw;
int dune_forbidden(struct dune_vcpu *vcpu, enum answer answer,
		   void (*inject)(struct vcpu_hw *hw, u32 vector, bool error));

extern const struct vendor svm_vendor;
extern const struct vendor vmx_vendor;

/* vendor.c: the one of this processor; set before anything else runs. */
extern const struct vendor *vendor;
int vendor_choose(void);

/*
 * kvm.c: KVM is loaded. Then virtualization is not turned on by @cpu_enable.
 * @moved and @enter look, with interrupts off, whether KVM has it on; if so
 * they use it and leave KVM's what is KVM's, if not they turn it on and off
 * again for themselves.
 */
DECLARE_STATIC_KEY_FALSE(dune_beside_kvm);

/* The same functions, without an indirect call, for the run loop. */
DECLARE_STATIC_CALL(vendor_load, *((struct vendor *)0)->load);
DECLARE_STATIC_CALL(vendor_store, *((struct vendor *)0)->store);
DECLARE_STATIC_CALL(vendor_moved, *((struct vendor *)0)->moved);
DECLARE_STATIC_CALL(vendor_enter, *((struct vendor *)0)->enter);
DECLARE_STATIC_CALL(vendor_handle_exit, *((struct vendor *)0)->handle_exit);

#endif /* DUNE_VENDOR_H */
