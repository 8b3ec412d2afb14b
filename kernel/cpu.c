// SPDX-License-Identifier: GPL-2.0-only
/*
 * Virtualization is on, on every CPU, while the module is loaded: turned on
 * as a CPU comes up, off as it goes down, off around suspend and at shutdown.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/percpu.h>
#include <linux/syscore_ops.h>

#include "compat.h"
#include "dune.h"
#include "vendor.h"

DEFINE_PER_CPU(bool, dune_virt_enabled);
static enum cpuhp_state virt_cpu_state;

static int virt_enable(void)
{
	int err = vendor->cpu_enable();

	__this_cpu_write(dune_virt_enabled, !err);
	return err;
}

static void virt_disable(void *unused)
{
	if (!__this_cpu_read(dune_virt_enabled))
		return;
	__this_cpu_write(dune_virt_enabled, false);
	vendor->cpu_disable();
}

static int virt_cpu_online(unsigned int cpu)
{
	unsigned long flags;
	int err;

	local_irq_save(flags);
	err = virt_enable();
	local_irq_restore(flags);
	if (err == -EBUSY)
		pr_err("CPU %u: virtualization is in use by another hypervisor; unload it (for KVM: modprobe -r kvm_amd)\n",
		       cpu);
	return err;
}

static int virt_cpu_offline(unsigned int cpu)
{
	unsigned long flags;

	local_irq_save(flags);
	virt_disable(NULL);
	local_irq_restore(flags);
	return 0;
}

/* The last CPU, interrupts off, every user thread frozen in user mode. */
static int virt_suspend(SYSCORE_ARGUMENT)
{
	virt_disable(NULL);
	return 0;
}

static void virt_resume(SYSCORE_ARGUMENT)
{
	if (virt_enable())
		pr_err("virtualization is unavailable after suspend\n");
}

static void virt_stop(void *unused)
{
	virt_disable(NULL);
	set_tsk_need_resched(current);
}

static void virt_shutdown(SYSCORE_ARGUMENT)
{
	on_each_cpu(virt_stop, NULL, 1);
}

static struct syscore_ops virt_syscore_ops = {
	.suspend = virt_suspend,
	.resume = virt_resume,
	.shutdown = virt_shutdown,
};

static struct syscore virt_syscore = { .ops = &virt_syscore_ops };

int dune_cpu_init(void)
{
	int ret = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "x86/dune:online",
				    virt_cpu_online, virt_cpu_offline);

	if (ret < 0)
		return ret;
	virt_cpu_state = ret;
	register_syscore(&virt_syscore);
	return 0;
}

void dune_cpu_exit(void)
{
	unregister_syscore(&virt_syscore);
	cpuhp_remove_state(virt_cpu_state);
}
