// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which vendor's virtualization this processor has. Chosen once, at load; the
 * calls of the run loop are patched to lead there directly.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include <linux/ptrace.h>
#include <asm/cpu.h>
#include <asm/cpufeature.h>
#include <asm/processor.h>

#include "virt/compat.h"
#include "dune/dune.h"
#include "dune/memory/shootdown.h"
#include "dune/vendor.h"

const struct vendor *vendor;

DEFINE_STATIC_CALL_NULL(vendor_load, *((struct vendor *)0)->load);
DEFINE_STATIC_CALL_NULL(vendor_store, *((struct vendor *)0)->store);
DEFINE_STATIC_CALL_NULL(vendor_moved, *((struct vendor *)0)->moved);
DEFINE_STATIC_CALL_NULL(vendor_enter, *((struct vendor *)0)->enter);
DEFINE_STATIC_CALL_NULL(vendor_handle_exit, *((struct vendor *)0)->handle_exit);

/* The kernel's answer to a bus lock: split_lock_detect=. */
DEFINE_STATIC_CALL_NULL(bus_lock, handle_bus_lock);

/**
 * dune_bus_lock() - the guest has locked the bus of the whole machine
 * @rip:	where
 *
 * Context: process, interrupts on; may sleep, which is the answer.
 */
void dune_bus_lock(unsigned long rip)
{
	struct pt_regs regs = { .ip = rip };

	static_call_cond(bus_lock)(&regs);
}

/* Returns 0, -ENODEV or -EOPNOTSUPP; says in one line what is missing. */
int vendor_choose(void)
{
	int err;

	if (boot_cpu_has(X86_FEATURE_SVM)) {
		vendor = &svm_vendor;
	} else if (cpuid_ecx(1) & BIT(5)) {
		/* Not the kernel's flag: it is cleared where VT-x is locked. */
		vendor = &vmx_vendor;
	} else {
		pr_err("this CPU has neither AMD SVM nor Intel VT-x, or a hypervisor hides it\n");
		return -ENODEV;
	}
	static_call_update(vendor_load, vendor->load);
	static_call_update(vendor_store, vendor->store);
	static_call_update(vendor_moved, vendor->moved);
	static_call_update(vendor_enter, vendor->enter);
	static_call_update(vendor_handle_exit, vendor->handle_exit);
	if (boot_cpu_has(X86_FEATURE_BUS_LOCK_DETECT))
		dune_bind(bus_lock, "handle_bus_lock");
	err = vendor->probe();
	if (!err && vendor->mirrors)
		static_branch_enable(&dune_mirrors);
	if (!err && (vendor->mirrors || shootdown_is_needed()))
		static_branch_enable(&dune_kicks);
	return err;
}

/*
 * For @handle_exit, at the end: raises what the vendor's table says by @inject,
 * or ends the run with a reason that nobody knows.
 */
int dune_forbidden(struct dune_vcpu *vcpu, enum answer answer,
		   void (*inject)(struct vcpu_hw *hw, u32 vector, bool error))
{
	bool gp = answer == ANSWER_GP;

	if (!gp && answer != ANSWER_UD) {
		dune_count(vcpu, DUNE_COUNT_OTHER);
		return DUNE_EXIT_UNKNOWN;
	}
	dune_count(vcpu, DUNE_COUNT_EXCEPTION);
	inject(vcpu->hw, gp ? 13 : 6, gp);
	return 0;
}
