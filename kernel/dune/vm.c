// SPDX-License-Identifier: GPL-2.0-only
/*
 * An open /dev/dune is an address space: that of the process that opened it.
 * The address space's vCPUs (vcpu.c) keep it alive after the file is closed.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "dune/info.h"
#include "dune/vcpu.h"
#include "dune/vm.h"

/* Returns the calling process's address space, with one reference, or an ERR_PTR(). */
struct dune_vm *dune_vm_new(void)
{
	struct dune_vm *vm = kzalloc(sizeof(*vm), GFP_KERNEL_ACCOUNT);

	if (!vm)
		return ERR_PTR(-ENOMEM);
	vm->mm = current->mm;
	kref_init(&vm->kref);
	mutex_init(&vm->lock);
	mmgrab(vm->mm);
	return vm;
}

/*
 * Called by a thread of the process before it adds a vCPU. Sleeps; only a fatal signal ends the
 * wait for the lock of the process's memory. Returns 0 or a negative errno.
 */
int dune_vm_prepare(struct dune_vm *vm)
{
	int err;

	if (mutex_lock_killable(&vm->lock))
		return -EINTR;
	err = vm->prepared ? 0 : second_level_get(&vm->second_level);
	vm->prepared = !err;
	mutex_unlock(&vm->lock);
	return err;
}

static int dune_vm_open(struct inode *inode, struct file *file)
{
	struct dune_vm *vm = dune_vm_new();

	if (IS_ERR(vm))
		return PTR_ERR(vm);
	file->private_data = vm;
	return 0;
}

static void dune_vm_free(struct kref *kref)
{
	struct dune_vm *vm = container_of(kref, struct dune_vm, kref);

	second_level_put(&vm->second_level);
	mmdrop(vm->mm);
	kfree(vm);
}

/* Takes a reference. */
void dune_vm_get(struct dune_vm *vm)
{
	kref_get(&vm->kref);
}

/* Drops a reference; the last one frees the address space. */
void dune_vm_put(struct dune_vm *vm)
{
	kref_put(&vm->kref, dune_vm_free);
}

static int dune_vm_release(struct inode *inode, struct file *file)
{
	dune_vm_put(file->private_data);
	return 0;
}

static long dune_create_vcpu(struct dune_vm *vm,
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
	return dune_vcpu_create(vm, create.flags);
}

static long dune_vm_ioctl(struct file *file, unsigned int request,
			  unsigned long argument)
{
	switch (request) {
	case DUNE_GET_INFO:
		return dune_get_info((void __user *)argument);
	case DUNE_CREATE_VCPU:
		return dune_create_vcpu(file->private_data,
					(void __user *)argument);
	default:
		return -ENOTTY;
	}
}

const struct file_operations dune_vm_fops = {
	.owner = THIS_MODULE,
	.open = dune_vm_open,
	.release = dune_vm_release,
	.unlocked_ioctl = dune_vm_ioctl,
	.llseek = noop_llseek,
};
