// SPDX-License-Identifier: GPL-2.0-only
/*
 * The operations on an open /dev/dune, which is an address space (vm.c).
 */
#include <linux/module.h>
#include <linux/uaccess.h>

#include "dune/info.h"
#include "dune/vcpu.h"
#include "dune/vm.h"

static int vm_open(struct inode *inode, struct file *file)
{
	struct dune_vm *vm = vm_new();

	if (IS_ERR(vm))
		return PTR_ERR(vm);
	file->private_data = vm;
	return 0;
}

static int vm_release(struct inode *inode, struct file *file)
{
	vm_put(file->private_data);
	return 0;
}

static long vm_create_vcpu(struct dune_vm *vm,
			   const struct dune_create_vcpu __user *argument)
{
	struct dune_create_vcpu create;

	if (copy_from_user(&create, argument, sizeof(create)))
		return -EFAULT;
	if (create.size != sizeof(create) ||
	    create.flags & ~DUNE_VCPU_FLAGS ||
	    create.reserved[0] || create.reserved[1])
		return -EINVAL;
	if (current->mm != vm->mm)
		return -EPERM;
	return vcpu_create(vm, create.flags);
}

static long vm_ioctl(struct file *file, unsigned int request,
		     unsigned long argument)
{
	switch (request) {
	case DUNE_GET_INFO:
		return info_get((void __user *)argument);
	case DUNE_CREATE_VCPU:
		return vm_create_vcpu(file->private_data,
				      (void __user *)argument);
	default:
		return -ENOTTY;
	}
}

const struct file_operations vm_fops = {
	.owner = THIS_MODULE,
	.open = vm_open,
	.release = vm_release,
	.unlocked_ioctl = vm_ioctl,
	.llseek = noop_llseek,
};
