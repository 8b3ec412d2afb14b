// SPDX-License-Identifier: GPL-2.0-only
/* guard-keys.ko's device, /dev/guard-keys (include/uapi/linux/guard-keys.h), and its files. */
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "guard/keys/outside.h"

static int device_open(struct inode *inode, struct file *file)
{
	static atomic64_t last;
	struct keys_file *keys = kmalloc(sizeof(*keys), GFP_KERNEL_ACCOUNT);

	if (!keys)
		return -ENOMEM;
	keys->number = atomic64_inc_return(&last);
	keys->user = from_kuid(&init_user_ns, file->f_cred->euid);
	keys->mode = file->f_mode;
	file->private_data = keys;
	return nonseekable_open(inode, file);
}

static int device_release(struct inode *inode, struct file *file)
{
	keys_close(file->private_data);
	kfree(file->private_data);
	return 0;
}

static long device_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	return keys_request(file->private_data, command, (void __user *)argument);
}

static const struct file_operations device_fops = {
	.owner = THIS_MODULE,
	.open = device_open,
	.release = device_release,
	.unlocked_ioctl = device_ioctl,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "guard-keys",
	.fops = &device_fops,
	.mode = 0600,
};

static int __init keys_init(void)
{
	int err;

	keys_start();
	err = misc_register(&device);
	if (err) {
		keys_guarded_end();
		return err;
	}
	keys_tell();
	return 0;
}

/* Open files and kept keys have references to the module, so there is no key any more. */
static void __exit keys_exit(void)
{
	misc_deregister(&device);
	keys_guarded_end();
}

module_init(keys_init);
module_exit(keys_exit);
MODULE_DESCRIPTION("Keeps keys, and encrypts and signs with them");
MODULE_LICENSE("GPL v2");
