// SPDX-License-Identifier: GPL-2.0-only
/*
 * The CPUs. Where no KVM is loaded (kvm.c), virtualization is on, on every
 * CPU, while the module is loaded: turned on as a CPU comes up, off as it
 * goes down, off around suspend, at shutdown and in a crash. Where KVM is, it
 * is KVM's; then a CPU is only ready or not ready for entries.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/reboot.h>
#include <linux/syscore_ops.h>
#include <asm/mce.h>

#include "virt/compat.h"
#include "dune/dune.h"
#include "dune/vendor.h"

/*
 * Both change on the CPU, with interrupts off. @dune_virt_enabled: entries
 * are allowed; @virt_is_ours: we turned virtualization on.
 */
DEFINE_PER_CPU(bool, dune_virt_enabled);
static DEFINE_PER_CPU(bool, virt_is_ours);
static enum cpuhp_state virt_cpu_state;
/* A CPU that comes up finds dune_beside_kvm before or after its change. */
static DEFINE_MUTEX(virt_lock);

/*
 * One counter for all CPUs: a run that has moved to another CPU must not find
 * there the number that it knows.
 */
atomic64_t dune_host_epoch = ATOMIC64_INIT(0);

static void host_changed(void)
{
	atomic64_inc(&dune_host_epoch);
}

static int virt_take(void)
{
	int err = vendor->cpu_enable();

	__this_cpu_write(virt_is_ours, !err);
	return err;
}

static void virt_let_go(void)
{
	if (!__this_cpu_read(virt_is_ours))
		return;
	__this_cpu_write(virt_is_ours, false);
	vendor->cpu_disable();
}

static int virt_enable(void)
{
	int err = 0;

	if (!static_branch_unlikely(&dune_beside_kvm))
		err = virt_take();
	__this_cpu_write(dune_virt_enabled, !err);
	host_changed();
	return err;
}

static void virt_disable(void *unused)
{
	if (!__this_cpu_read(dune_virt_enabled))
		return;
	__this_cpu_write(dune_virt_enabled, false);
	host_changed();
	virt_let_go();
	if (vendor->cpu_forget)
		vendor->cpu_forget();
}

static int virt_cpu_online(unsigned int cpu)
{
	unsigned long flags;
	int err;

	mutex_lock(&virt_lock);
	local_irq_save(flags);
	err = virt_enable();
	local_irq_restore(flags);
	mutex_unlock(&virt_lock);
	if (err == -EBUSY)
		pr_err("CPU %u: virtualization is in use by another hypervisor: unload it%s\n",
		       cpu, vendor->shares ? "" : " (for KVM: modprobe -r kvm_intel)");
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

/* Not a syscore's shutdown: older kernels have none when kexec follows. */
static int virt_shutdown(struct notifier_block *notifier, unsigned long event,
			 void *data)
{
	on_each_cpu(virt_disable, NULL, 1);
	return NOTIFY_DONE;
}

static struct notifier_block virt_reboot = { .notifier_call = virt_shutdown };

static struct syscore_ops virt_syscore_ops = {
	.suspend = virt_suspend,
	.resume = virt_resume,
};

static struct syscore virt_syscore = { .ops = &virt_syscore_ops };

/*
 * A crash or a reboot by force, on each CPU, perhaps in an NMI: the kernel that
 * is started next could not bear it, nor is INIT received with VT-x on.
 */
void dune_cpu_emergency(void)
{
	if (!__this_cpu_read(virt_is_ours))
		return;
	/* A panic that restarts comes here twice. */
	__this_cpu_write(virt_is_ours, false);
	host_changed();
	vendor->cpu_emergency();
}

static void virt_to_kvm(void *unused)
{
	virt_let_go();
	host_changed();
}

static void virt_from_kvm(void *unused)
{
	if (__this_cpu_read(dune_virt_enabled) && virt_take())
		__this_cpu_write(dune_virt_enabled, false);
	host_changed();
}

/*
 * In between virtualization is on, by us, while entries look for it. They
 * find it on and use it: nothing else that they could.
 */
void dune_cpu_set_beside(bool beside)
{
	cpus_read_lock();
	mutex_lock(&virt_lock);
	if (beside) {
		static_branch_enable_cpuslocked(&dune_beside_kvm);
		on_each_cpu(virt_to_kvm, NULL, 1);
	} else {
		on_each_cpu(virt_from_kvm, NULL, 1);
		static_branch_disable_cpuslocked(&dune_beside_kvm);
		host_changed();
	}
	mutex_unlock(&virt_lock);
	cpus_read_unlock();
}

int dune_cpu_init(void)
{
	int ret = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "x86/dune:online",
				    virt_cpu_online, virt_cpu_offline);

	if (ret < 0)
		return ret;
	virt_cpu_state = ret;
	register_syscore(&virt_syscore);
	register_reboot_notifier(&virt_reboot);
	return 0;
}

void dune_cpu_exit(void)
{
	unregister_reboot_notifier(&virt_reboot);
	unregister_syscore(&virt_syscore);
	cpuhp_remove_state(virt_cpu_state);
}

/*
 * An exit has taken a machine check: the kernel's handler is called as if it
 * came from user mode, for what a guest consumed costs its process, and not
 * the machine. Interrupts off.
 */
void dune_machine_check(void)
{
	struct pt_regs regs = { .cs = __USER_CS, .flags = X86_EFLAGS_IF };

	if (IS_ENABLED(CONFIG_X86_MCE))
		do_machine_check(&regs);
}
