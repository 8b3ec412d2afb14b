// SPDX-License-Identifier: GPL-2.0-only
/*
 * Chooses the vendor of this processor's virtualization, and starts and stops the parts
 * of virt/.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include <asm/cpufeature.h>
#include <asm/processor.h>

#include "virt/compat.h"
#include "virt/internal.h"
#include "virt/virt.h"

const struct virt_ops *virt_ops __ro_after_init;

static bool has_vmx(void)
{
	/* The kernel's flag is not used: it is cleared if the firmware locked VT-x. */
	return cpuid_ecx(1) & BIT(X86_FEATURE_VMX & 31);
}

int __init virt_init(void)
{
	int err;

	if (boot_cpu_has(X86_FEATURE_SVM)) {
		virt_ops = &svm_virt_ops;
	} else if (has_vmx()) {
		virt_ops = &vmx_virt_ops;
	} else {
		pr_err("this CPU has neither AMD SVM nor Intel VT-x, or a hypervisor hides it\n");
		return -ENODEV;
	}
	err = virt_ops->probe();
	if (err)
		return err;
	err = virt_ops->init();
	if (err)
		virt_ops->cleanup();
	return err;
}

enum virt_vendor virt_vendor(void)
{
	return virt_ops->vendor;
}

/* The opposite of virt_init(). */
void virt_cleanup(void)
{
	virt_ops->cleanup();
}

int virt_start(void (*cpu_off)(void))
{
	int err = virt_kvm_start();

	if (err)
		return err;
	err = virt_cpus_start(cpu_off);
	if (err)
		virt_kvm_stop();
	return err;
}

void virt_stop(void)
{
	virt_cpus_stop();
	virt_kvm_stop();
}
