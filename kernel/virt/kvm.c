// SPDX-License-Identifier: GPL-2.0-only
/*
 * Life beside KVM: who turns virtualization on.
 *
 * KVM turns it on for itself, on all CPUs: 6.12 and newer when kvm_amd or
 * kvm_intel is loaded, older ones with the first machine, and off with the
 * last. Where it finds it on already, it fails (EBUSY). So there are two ways
 * of ours, and dune_beside_kvm says which:
 *  - no KVM is loaded: it is on while Dune is loaded (cpu.c);
 *  - KVM is loaded: it is KVM's. An entry uses it where KVM has it on, and
 *    else turns it on for itself, with interrupts off, so that KVM never
 *    finds it on (vendor->enter).
 * What counts is kvm.ko, without which no KVM is. It also says who is
 * called in a crash: the kernel has one place for that, and KVM wants it.
 */
#include <linux/cpu.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/string.h>
#include <asm/reboot.h>

#include "virt/compat.h"
#include "dune/dune.h"
#include "dune/vendor.h"

DEFINE_STATIC_KEY_FALSE(dune_beside_kvm);

static DEFINE_MUTEX(beside_lock);

/* Between dune_kvm_init() and dune_kvm_exit(); under beside_lock. */
static bool ready;

/* Nothing of KVM runs before COMING has returned, nor after GOING. */
static void set_beside(bool beside)
{
	if (!ready || static_key_enabled(&dune_beside_kvm) == beside)
		return;
	if (beside) {
		cpu_emergency_unregister_virt_callback(dune_cpu_emergency);
		preempt_notifier_inc();
		dune_cpu_set_beside(true);
	} else {
		dune_cpu_set_beside(false);
		preempt_notifier_dec();
		cpu_emergency_register_virt_callback(dune_cpu_emergency);
	}
}

static int module_event(struct notifier_block *notifier, unsigned long event,
			void *data)
{
	const struct module *module = data;

	if (!vendor->shares || strcmp(module->name, "kvm"))
		return NOTIFY_DONE;
	mutex_lock(&beside_lock);
	switch (event) {
	case MODULE_STATE_COMING:
	case MODULE_STATE_LIVE:
		set_beside(true);
		break;
	case MODULE_STATE_GOING:
		set_beside(false);
		break;
	}
	mutex_unlock(&beside_lock);
	return NOTIFY_DONE;
}

static struct notifier_block module_notifier = {
	.notifier_call = module_event,
};

/* As a module that is alive, or in the kernel itself. */
static bool kvm_is_loaded(void)
{
	static const char symbol[] = "kvm_put_kvm";

	if (!__symbol_get(symbol))
		return false;
	__symbol_put(symbol);
	return true;
}

/* What comes later finds nothing to change. */
static void leave(void)
{
	mutex_lock(&beside_lock);
	if (static_key_enabled(&dune_beside_kvm))
		preempt_notifier_dec();
	else
		cpu_emergency_unregister_virt_callback(dune_cpu_emergency);
	ready = false;
	mutex_unlock(&beside_lock);
}

static bool is_beside(void)
{
	return vendor->shares && kvm_is_loaded();
}

/*
 * Before any CPU is on. The notifier's chain is locked while it calls
 * module_event(), so it cannot be joined under beside_lock: what came and went
 * before it was joined is looked for afterwards. A KVM that is just being
 * loaded is not seen here, but it will be LIVE later, and its processor's part,
 * which is what turns virtualization on, is loaded only then.
 */
int dune_kvm_init(void)
{
	int err;

	mutex_lock(&beside_lock);
	ready = true;
	if (is_beside()) {
		preempt_notifier_inc();
		dune_cpu_set_beside(true);
	} else {
		cpu_emergency_register_virt_callback(dune_cpu_emergency);
	}
	mutex_unlock(&beside_lock);
	err = register_module_notifier(&module_notifier);
	if (err) {
		leave();
		return err;
	}
	mutex_lock(&beside_lock);
	set_beside(is_beside());
	mutex_unlock(&beside_lock);
	return 0;
}

/* After all CPUs are off. */
void dune_kvm_exit(void)
{
	leave();
	unregister_module_notifier(&module_notifier);
}
