// SPDX-License-Identifier: GPL-2.0-only
/*
 * dune.ko: /dev/dune, through which a process gets ring 0, page tables and
 * exceptions of its own by way of the virtualization hardware.
 *
 * This file starts and stops the parts. The story continues in vm.c and vm_file.c (an address
 * space, and the open file that is one), vcpu.c and vcpu_file.c (its vCPUs), stub.c (the page
 * through which a thread without a host half runs them), alone.c (what the module does in place of
 * that half), child.c and birth.c (the vCPUs of its children), exec.c (what such a thread
 * executes), run.c (the run loop), exit.c, fault.c, hypercall.c and closed_list.c (the work after
 * an exit), and info.c (what a runtime asks about the module). The memory that a guest sees is in
 * memory/. vcpu_ops.h declares the vendors' parts, svm/ and vmx/. Below all of this are virt/,
 * which owns the CPUs' virtualization, and x86/.
 *
 * Names: the prefix dune_ is for what user mode or Linux sees: the interface of <linux/dune.h>,
 * the tracepoints, and the two structures whose files user mode holds, struct dune_vm and
 * struct dune_vcpu. Inside the module, a function or variable that other files use begins with
 * the name of the file that defines it (vm_get() is in vm.c) or of the thing that the file is
 * about (granules_map()); those of compat.h are about the kernel (kernel_uses_fred()). A
 * vendor's begin with the vendor: svm_ and vmx_ in dune/, svm_virt_ and vmx_virt_ in virt/.
 * Instructions have the manual's names (vmsave()), and functions that stand in for Linux's have
 * Linux's (write_ibpb()).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/preempt.h>

#include "dune/alone.h"
#include "dune/exec.h"
#include "dune/exit.h"
#include "dune/guest_state.h"
#include "dune/hypercall.h"
#include "dune/memory/second_level.h"
#include "dune/stub.h"
#include "dune/vcpu.h"
#include "dune/vcpu_ops.h"
#include "dune/vm.h"
#include "virt/virt.h"

#define CREATE_TRACE_POINTS
#include "dune/trace/trace.h"

static struct miscdevice dune_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "dune",
	.fops = &vm_fops,
	.mode = 0600,
};

/* The opposite of dune_load(), for all but the device. */
static void dune_stop(void)
{
	exec_cleanup();
	if (vcpu_ops->needs_put)
		preempt_notifier_dec();
	virt_stop();
	stub_cleanup();
	second_level_cleanup();
	vcpu_ops_cleanup();
	virt_cleanup();
}

static int __init dune_load(void)
{
	int err;

	err = virt_init();
	if (err)
		return err;
	err = vcpu_ops_init();
	if (err)
		goto cleanup_virt;
	err = second_level_init(guest_address_bits());
	if (err)
		goto cleanup_ops;
	err = stub_init();
	if (err)
		goto cleanup_second_level;
	exit_init();
	alone_init();
	err = virt_start(vcpu_ops->cpu_off);
	if (err)
		goto cleanup_stub;
	if (vcpu_ops->needs_put)
		preempt_notifier_inc();
	run_init();
	hypercall_init();
	exec_init();
	err = misc_register(&dune_device);
	if (err)
		dune_stop();
	return err;

cleanup_stub:
	stub_cleanup();
cleanup_second_level:
	second_level_cleanup();
cleanup_ops:
	vcpu_ops_cleanup();
cleanup_virt:
	virt_cleanup();
	return err;
}

static void __exit dune_unload(void)
{
	misc_deregister(&dune_device);
	dune_stop();
}

module_init(dune_load);
module_exit(dune_unload);
MODULE_DESCRIPTION("Safe user-level access to privileged CPU features");
MODULE_LICENSE("GPL v2");
