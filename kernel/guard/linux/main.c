// SPDX-License-Identifier: GPL-2.0-only
/*
 * dune-guard.ko: a small hypervisor that is launched beneath the running kernel, on all CPUs.
 *
 * This file has the device, /dev/dune-guard. guard.h lists the other files of this part; guard/hv/
 * is the hypervisor itself. Loading the module changes nothing: the guard is launched, sealed and
 * stopped through the device (include/uapi/linux/dune-guard.h).
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>

#include "guard/linux/guard.h"

static long guard_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	return guard_request(command, (void __user *)argument);
}

static const struct file_operations guard_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = guard_ioctl,
};

static struct miscdevice guard_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "dune-guard",
	.fops = &guard_fops,
	.mode = 0600,
};

static int __init guard_init(void)
{
	int err = guard_lifecycle_init();

	if (err)
		return err;
	err = guard_registrations_init();
	if (err)
		goto no_registrations;
	err = misc_register(&guard_device);
	if (err)
		goto no_device;
	return 0;
no_device:
	guard_registrations_cleanup();
no_registrations:
	guard_lifecycle_cleanup();
	return err;
}

/* A sealed guard has a reference to the module, so it is not sealed here. */
static void __exit guard_exit(void)
{
	misc_deregister(&guard_device);
	/* The notifiers stay until the guard has stopped: they refuse suspend while it runs. */
	guard_stop_for_shutdown();
	guard_registrations_cleanup();
	guard_lifecycle_cleanup();
}

module_init(guard_init);
module_exit(guard_exit);
MODULE_DESCRIPTION("A hypervisor beneath the running kernel that guards kernel modules");
MODULE_LICENSE("GPL v2");
