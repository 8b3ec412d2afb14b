// SPDX-License-Identifier: GPL-2.0-only
/*
 * dune.ko: /dev/dune, through which a process gets ring 0, page tables and
 * exceptions of its own by way of the virtualization hardware.
 *
 * This file brings the parts up and down. The story goes on in vm.c (what
 * an open file is), vcpu.c (the run loop), fault.c and syscall.c (what the
 * guest leaves for); svm.c and vmx.c are behind vendor.h.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/miscdevice.h>
#include <linux/module.h>

#include "dune.h"
#include "vendor.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

static struct miscdevice dune_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "dune",
	.fops = &dune_vm_fops,
	.mode = 0600,
};

static int __init dune_init(void)
{
	int err;

	err = vendor_choose();
	if (err)
		return err;
	err = vendor->init();
	if (err)
		return err;
	err = dune_kvm_init();
	if (err)
		goto vendor;
	err = dune_cpu_init();
	if (err)
		goto kvm;
	if (vendor->puts_always)
		preempt_notifier_inc();
	dune_vcpu_init();
	dune_syscall_init();
	err = misc_register(&dune_device);
	if (err)
		goto cpu;
	return 0;

cpu:
	if (vendor->puts_always)
		preempt_notifier_dec();
	dune_cpu_exit();
kvm:
	dune_kvm_exit();
vendor:
	vendor->exit();
	return err;
}

static void __exit dune_exit(void)
{
	misc_deregister(&dune_device);
	if (vendor->puts_always)
		preempt_notifier_dec();
	dune_cpu_exit();
	dune_kvm_exit();
	kick_exit();
	vendor->exit();
}

module_init(dune_init);
module_exit(dune_exit);
MODULE_DESCRIPTION("Safe user-level access to privileged CPU features");
MODULE_LICENSE("GPL v2");
