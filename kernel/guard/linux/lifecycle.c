// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reboot, kexec, suspend and hibernation. The first two stop a guard that is not sealed (kexec.c
 * has the rest of kexec); the others are refused while it is launched. In a panic the guard stays:
 * it ignores the kernel's writes to EFER and VM_HSAVE_PA, and STGI.
 */
#define pr_fmt(fmt) "dune-guard: " fmt

#include <linux/notifier.h>
#include <linux/printk.h>
#include <linux/reboot.h>
#include <linux/suspend.h>

#include "guard/linux/guard.h"

static int reboot_event(struct notifier_block *notifier, unsigned long event, void *data)
{
	guard_stop_for_shutdown();
	return NOTIFY_DONE;
}

/* Both would leave the guard's memory and every CPU to code that runs without it. */
static int pm_event(struct notifier_block *notifier, unsigned long event, void *data)
{
	int state;

	switch (event) {
	case PM_SUSPEND_PREPARE:
	case PM_HIBERNATION_PREPARE:
	case PM_RESTORE_PREPARE:
		state = guard_set_sleeping(true);
		if (state == DUNE_GUARD_OFF)
			return NOTIFY_DONE;
		pr_err("no suspend and no hibernation while the guard is %s\n",
		       state == DUNE_GUARD_SEALED ? "sealed" : "launched: dunectl guard stop");
		return notifier_from_errno(-EBUSY);
	case PM_POST_SUSPEND:
	case PM_POST_HIBERNATION:
	case PM_POST_RESTORE:
		guard_set_sleeping(false);
		return NOTIFY_DONE;
	default:
		return NOTIFY_DONE;
	}
}

static struct notifier_block reboot_notifier = { .notifier_call = reboot_event };
static struct notifier_block pm_notifier = { .notifier_call = pm_event };

int guard_lifecycle_init(void)
{
	int err = register_reboot_notifier(&reboot_notifier);

	if (err)
		return err;
	err = register_pm_notifier(&pm_notifier);
	if (err)
		unregister_reboot_notifier(&reboot_notifier);
	return err;
}

void guard_lifecycle_cleanup(void)
{
	unregister_pm_notifier(&pm_notifier);
	unregister_reboot_notifier(&reboot_notifier);
}
