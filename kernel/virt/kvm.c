// SPDX-License-Identifier: GPL-2.0-only
/*
 * While KVM is loaded, KVM owns the CPUs' virtualization.
 *
 * KVM turns virtualization on for itself, on all CPUs: since 6.12 when kvm_amd or
 * kvm_intel is loaded, and in older kernels with the first VM. KVM turns it off when that
 * module is unloaded, or with the last VM. If KVM finds virtualization on already, it fails
 * (EBUSY). virt/ therefore works in one of two ways, which virt_kvm_loaded selects:
 *  - KVM is not loaded: virtualization is on from virt_start() to virt_stop() (cpu.c).
 *  - KVM is loaded: KVM owns virtualization. An entry uses it on a CPU on which KVM has
 *    it on. On other CPUs the entry turns it on for itself, with interrupts off, so
 *    that KVM never finds it on.
 * KVM counts as loaded while kvm.ko is loaded: kvm_amd and kvm_intel need it. The kernel has
 * one crash callback for virtualization. virt/ registers it while KVM is not loaded, and
 * leaves it to KVM otherwise.
 */
#include <linux/cpu.h>
#include <linux/lockdep.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/string.h>
#include <asm/reboot.h>

#include "virt/compat.h"
#include "virt/internal.h"
#include "virt/virt.h"

static DEFINE_MUTEX(kvm_lock);

/* Between virt_kvm_start() and virt_kvm_stop(); under kvm_lock. */
static bool watching;

/*
 * KVM runs no code before COMING has returned, nor after GOING. Preemption notifiers
 * tell an entry's thread to clean up before a KVM thread runs.
 */
static void set_loaded(bool loaded)
{
	lockdep_assert_held(&kvm_lock);
	if (!watching || static_key_enabled(&virt_kvm_loaded) == loaded)
		return;
	if (loaded) {
		cpu_emergency_unregister_virt_callback(virt_cpu_emergency);
		preempt_notifier_inc();
		virt_cpus_set_kvm(true);
	} else {
		virt_cpus_set_kvm(false);
		preempt_notifier_dec();
		cpu_emergency_register_virt_callback(virt_cpu_emergency);
	}
}

static int module_event(struct notifier_block *notifier, unsigned long event, void *data)
{
	const struct module *module = data;

	if (strcmp(module->name, "kvm"))
		return NOTIFY_DONE;
	mutex_lock(&kvm_lock);
	switch (event) {
	case MODULE_STATE_COMING:
	case MODULE_STATE_LIVE:
		set_loaded(true);
		break;
	case MODULE_STATE_GOING:
		set_loaded(false);
		break;
	}
	mutex_unlock(&kvm_lock);
	return NOTIFY_DONE;
}

static struct notifier_block module_notifier = {
	.notifier_call = module_event,
};

/*
 * Returns whether KVM is built into the kernel, or is a module whose load has finished. KVM
 * exports this function to all modules, up to 7.3 at least: newer kernels' vfio looks it up in
 * the same way.
 */
static bool kvm_is_loaded(void)
{
	static const char symbol[] = "kvm_put_kvm";

	if (!__symbol_get(symbol))
		return false;
	__symbol_put(symbol);
	return true;
}

/*
 * Undoes virt_kvm_start() up to the notifier. After this a late event changes nothing, because
 * watching is false.
 */
static void stop_watching(void)
{
	mutex_lock(&kvm_lock);
	if (static_key_enabled(&virt_kvm_loaded))
		preempt_notifier_dec();
	else
		cpu_emergency_unregister_virt_callback(virt_cpu_emergency);
	watching = false;
	mutex_unlock(&kvm_lock);
}

/*
 * Called before any CPU has virtualization on. The notifier's chain is locked while it
 * calls module_event(), so the chain cannot be joined under kvm_lock. A KVM that came
 * or went before the chain was joined is looked for afterwards. A KVM that is just
 * being loaded is not found then, but it becomes LIVE later, and its
 * processor's part, which turns virtualization on, is loaded only after that.
 */
int virt_kvm_start(void)
{
	int err;

	mutex_lock(&kvm_lock);
	watching = true;
	/* Not set_loaded(): no crash callback is registered yet that it could unregister. */
	if (kvm_is_loaded()) {
		preempt_notifier_inc();
		virt_cpus_set_kvm(true);
	} else {
		cpu_emergency_register_virt_callback(virt_cpu_emergency);
	}
	mutex_unlock(&kvm_lock);
	err = register_module_notifier(&module_notifier);
	if (err) {
		stop_watching();
		return err;
	}
	mutex_lock(&kvm_lock);
	set_loaded(kvm_is_loaded());
	mutex_unlock(&kvm_lock);
	return 0;
}

/* The opposite of virt_kvm_start(); virtualization is off. */
void virt_kvm_stop(void)
{
	stop_watching();
	unregister_module_notifier(&module_notifier);
}
