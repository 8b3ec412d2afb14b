// SPDX-License-Identifier: GPL-2.0-only
/*
 * Virtualization on each CPU. Between virt_start() and virt_stop(), while KVM is not
 * loaded (kvm.c), virtualization is on, on every CPU: this file turns it on as a CPU
 * comes up, and off as the CPU goes down, around suspend, at shutdown and in a crash. While
 * KVM is loaded, KVM turns virtualization on and off, and this file only records whether a
 * CPU may enter guests.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/lockdep.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/reboot.h>
#include <linux/syscore_ops.h>

#include "virt/compat.h"
#include "virt/internal.h"
#include "virt/tag.h"
#include "virt/virt.h"

/*
 * Both change only on the CPU itself, with interrupts off. virt_enabled: entries are
 * allowed. virt_is_ours: virt/ turned virtualization on, not KVM and not an entry.
 */
DEFINE_PER_CPU(bool, virt_enabled);
static DEFINE_PER_CPU(bool, virt_is_ours);

/* Changed by virt_cpus_set_kvm() alone. */
DEFINE_STATIC_KEY_FALSE(virt_kvm_loaded);

/*
 * Held while a CPU comes up, and while virt_kvm_loaded changes on all CPUs: a CPU that comes up
 * sees the state either before the change or after it. cpus_read_lock() does not order the two:
 * cpuhp_setup_state() holds it, too, while it calls virt_cpu_online().
 */
static DEFINE_MUTEX(virt_lock);
/*
 * The function that virt_start() got from the layer above, or NULL if it got none.
 * virt_cpus_start() writes it before any CPU has virtualization on, and it does not change while
 * one has.
 */
static void (*before_off)(void);
/* Only virt_cpus_start() and virt_cpus_stop() use it, which never run at the same time. */
static enum cpuhp_state hotplug_state;

/*
 * One counter serves all CPUs: a run that has moved to another CPU must not find the
 * number that it knows there.
 */
atomic64_t virt_epoch = ATOMIC64_INIT(0);

/* Makes every run prepare again before its next entry (virt.h: virt_epoch). */
static void advance_epoch(void)
{
	atomic64_inc(&virt_epoch);
}

/*
 * Returns 0 or a negative errno. Reports the reason in the log if it fails. Interrupts are off.
 */
static int virt_turn_on(void)
{
	int err = virt_ops->cpu_turn_on();

	__this_cpu_write(virt_is_ours, !err);
	if (!err)
		tags_invalidate();
	else if (err == -EBUSY)
		pr_err("CPU %u: virtualization is in use by another hypervisor: unload it\n",
		       smp_processor_id());
	else
		pr_err("CPU %u refuses to turn virtualization on (%d): stop processor trace (perf's intel_pt)\n",
		       smp_processor_id(), err);
	return err;
}

/* Turns virtualization off if virt/ turned it on. Interrupts are off. */
static void virt_turn_off(void)
{
	if (!__this_cpu_read(virt_is_ours))
		return;
	__this_cpu_write(virt_is_ours, false);
	if (before_off)
		before_off();
	virt_ops->cpu_turn_off();
}

/*
 * Allows entries on this CPU; turns virtualization on unless KVM is loaded. If that fails,
 * entries are forbidden. Returns 0 or a negative errno.
 */
static int virt_enable(void)
{
	int err = 0;

	lockdep_assert_irqs_disabled();
	if (!static_branch_unlikely(&virt_kvm_loaded))
		err = virt_turn_on();
	__this_cpu_write(virt_enabled, !err);
	advance_epoch();
	return err;
}

/* Forbids entries on this CPU, and turns virtualization off if virt/ turned it on. */
static void virt_disable(void *unused)
{
	lockdep_assert_irqs_disabled();
	if (!__this_cpu_read(virt_enabled))
		return;
	__this_cpu_write(virt_enabled, false);
	advance_epoch();
	virt_turn_off();
	if (virt_ops->cpu_clear)
		virt_ops->cpu_clear();
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
	return err;
}

/*
 * Takes no lock: virt_disable() reads and changes only this CPU's own flags, with interrupts
 * off, and not virt_kvm_loaded.
 */
static int virt_cpu_offline(unsigned int cpu)
{
	unsigned long flags;

	local_irq_save(flags);
	virt_disable(NULL);
	local_irq_restore(flags);
	return 0;
}

/*
 * Called on the last CPU, with interrupts off. Every user thread is frozen, in user mode or in a
 * system call.
 */
static int virt_suspend(SYSCORE_ARGUMENT)
{
	virt_disable(NULL);
	return 0;
}

static void virt_resume(SYSCORE_ARGUMENT)
{
	virt_enable();
}

/* A syscore's shutdown would not do: in older kernels none is called before kexec. */
static int virt_shutdown(struct notifier_block *notifier, unsigned long event, void *data)
{
	on_each_cpu(virt_disable, NULL, 1);
	return NOTIFY_DONE;
}

static struct notifier_block reboot_notifier = { .notifier_call = virt_shutdown };

static struct syscore_ops syscore_ops = {
	.suspend = virt_suspend,
	.resume = virt_resume,
};

static struct syscore syscore = { .ops = &syscore_ops };

/*
 * A crash or a reboot by force calls this on each CPU, perhaps in an NMI. A kernel
 * that is started next would fault with virtualization on, and a CPU receives no
 * INIT while VT-x is on.
 */
void virt_cpu_emergency(void)
{
	if (!__this_cpu_read(virt_is_ours))
		return;
	/* A panic that is followed by a restart comes here twice. */
	__this_cpu_write(virt_is_ours, false);
	advance_epoch();
	virt_ops->cpu_emergency();
}

/* KVM is loaded: turns virtualization off, so that KVM can turn it on. Interrupts are off. */
static void virt_give_to_kvm(void *unused)
{
	virt_turn_off();
	advance_epoch();
}

/* KVM is gone: turns virtualization on again where entries are allowed. Interrupts are off. */
static void virt_take_from_kvm(void *unused)
{
	if (__this_cpu_read(virt_enabled) && virt_turn_on())
		__this_cpu_write(virt_enabled, false);
	advance_epoch();
}

/*
 * During the transition virt_is_ours may still, or already, be set on a CPU while an entry
 * there looks for KVM's virtualization. That entry finds virtualization on and uses
 * it, as it would use KVM's.
 */
void virt_cpus_set_kvm(bool loaded)
{
	cpus_read_lock();
	mutex_lock(&virt_lock);
	if (loaded) {
		static_branch_enable_cpuslocked(&virt_kvm_loaded);
		on_each_cpu(virt_give_to_kvm, NULL, 1);
	} else {
		on_each_cpu(virt_take_from_kvm, NULL, 1);
		static_branch_disable_cpuslocked(&virt_kvm_loaded);
		advance_epoch();
	}
	mutex_unlock(&virt_lock);
	cpus_read_unlock();
}

int virt_cpus_start(void (*cpu_off)(void))
{
	int ret;

	before_off = cpu_off;
	ret = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "x86/virt:online",
				virt_cpu_online, virt_cpu_offline);
	if (ret < 0)
		return ret;
	hotplug_state = ret;
	register_syscore(&syscore);
	register_reboot_notifier(&reboot_notifier);
	return 0;
}

/* The opposite of virt_cpus_start(): no CPU may enter guests when it returns. */
void virt_cpus_stop(void)
{
	unregister_reboot_notifier(&reboot_notifier);
	unregister_syscore(&syscore);
	cpuhp_remove_state(hotplug_state);
}
