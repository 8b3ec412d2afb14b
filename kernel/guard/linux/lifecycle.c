// SPDX-License-Identifier: GPL-2.0-only
/*
 * What ends the kernel or the computer's memory. A reboot and a kexec stop a guard that is not
 * sealed; suspend and hibernation are refused while it is launched. Sealing refuses if a kernel is
 * loaded for kexec, and forbids to load one. In a panic the guard stays: it ignores the kernel's
 * writes to EFER and VM_HSAVE_PA, and STGI.
 */
#define pr_fmt(fmt) "dune-guard: " fmt

#include <linux/err.h>
#include <linux/fs.h>
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

/* Returns the first character of a file of the kernel, or 0 without it. */
static char read_flag(const char *path)
{
	struct file *file = filp_open(path, O_RDONLY, 0);
	loff_t at = 0;
	char flag = 0;

	if (IS_ERR(file))
		return 0;
	kernel_read(file, &flag, 1, &at);
	filp_close(file, NULL);
	return flag;
}

/*
 * Forbids kexec to load a kernel from now on, for good. Modules have no other way to do so than the
 * sysctl. A crash kernel that is loaded already stays: it has memory of its own, and runs under the
 * guard. Returns 0, or a negative errno with the reason in @answer.
 */
int guard_kexec_disable(struct dune_guard_answer *answer)
{
	static const char path[] = "/proc/sys/kernel/kexec_load_disabled";
	struct file *file;
	loff_t at = 0;
	ssize_t written;

	if (read_flag("/sys/kernel/kexec_loaded") == '1')
		return guard_refuse(answer, -EBUSY,
				    "a kernel is loaded for kexec, which would run without the guard: kexec -u");
	file = filp_open(path, O_WRONLY, 0);
	if (PTR_ERR_OR_ZERO(file) == -ENOENT)
		return 0;	/* This kernel has no kexec. */
	if (IS_ERR(file))
		return guard_refuse(answer, PTR_ERR(file), "%s cannot be opened", path);
	written = kernel_write(file, "1", 1, &at);
	filp_close(file, NULL);
	if (written != 1)
		return guard_refuse(answer, -EIO, "%s cannot be written", path);
	if (read_flag("/sys/kernel/kexec_loaded") == '1')
		return guard_refuse(answer, -EBUSY,
				    "a kernel was loaded for kexec meanwhile: kexec -u");
	return 0;
}

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
