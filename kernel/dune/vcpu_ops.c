// SPDX-License-Identifier: GPL-2.0-only
/*
 * The vendor's table for vCPUs. It is chosen once, at load; the calls of the run loop
 * are patched to lead to its functions directly.
 */
#include "dune/vcpu_ops.h"
#include "virt/virt.h"

const struct vcpu_ops *vcpu_ops __ro_after_init;

DEFINE_STATIC_CALL_NULL(vcpu_load_regs, *((struct vcpu_ops *)0)->load_regs);
DEFINE_STATIC_CALL_NULL(vcpu_store_regs, *((struct vcpu_ops *)0)->store_regs);
DEFINE_STATIC_CALL_NULL(vcpu_load, *((struct vcpu_ops *)0)->load);
DEFINE_STATIC_CALL_NULL(vcpu_enter, *((struct vcpu_ops *)0)->enter);
DEFINE_STATIC_CALL_NULL(vcpu_handle_exit, *((struct vcpu_ops *)0)->handle_exit);

/* Returns 0 or a negative errno. Every error but -ENOMEM is reported by one line in the log. */
int __init vcpu_ops_init(void)
{
	int err;

	vcpu_ops = virt_vendor() == VIRT_SVM ? &svm_vcpu_ops : &vmx_vcpu_ops;
	static_call_update(vcpu_load_regs, vcpu_ops->load_regs);
	static_call_update(vcpu_store_regs, vcpu_ops->store_regs);
	static_call_update(vcpu_load, vcpu_ops->load);
	static_call_update(vcpu_enter, vcpu_ops->enter);
	static_call_update(vcpu_handle_exit, vcpu_ops->handle_exit);
	err = vcpu_ops->init();
	if (err)
		vcpu_ops->cleanup();
	return err;
}

void vcpu_ops_cleanup(void)
{
	vcpu_ops->cleanup();
}
