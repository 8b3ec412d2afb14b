// SPDX-License-Identifier: GPL-2.0-only
/*
 * The operations on the file of a vCPU (vcpu.c). The most frequent one, a run, is in run.c, and the
 * way in which a stub calls it in alone.c.
 */
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/uaccess.h>

#include "dune/alone.h"
#include "dune/child.h"
#include "dune/compat.h"
#include "dune/guest_state.h"
#include "dune/info.h"
#include "dune/stub.h"
#include "dune/vcpu.h"
#include "dune/vcpu_ops.h"
#include "dune/vm.h"

/*
 * Carries out DUNE_GET_STATE. Unlike DUNE_SET_STATE this needs no test of vcpu->running: it
 * changes nothing of a run that is on the stack.
 */
static long vcpu_get_state(struct dune_vcpu *vcpu,
			   struct dune_state __user *argument)
{
	struct dune_state state = { .size = sizeof(state) };
	u32 size;
	int err;

	if (get_user(size, &argument->size))
		return -EFAULT;
	if (size != sizeof(state))
		return -EINVAL;
	err = vcpu_ops->get_state(vcpu, &state);
	if (err)
		return err;
	state.size = sizeof(state);
	if (copy_to_user(argument, &state, sizeof(state)))
		return -EFAULT;
	return 0;
}

/* Carries out DUNE_SET_STATE. */
static long vcpu_set_state(struct dune_vcpu *vcpu,
			   const struct dune_state __user *argument)
{
	struct dune_state state;

	if (copy_from_user(&state, argument, sizeof(state)))
		return -EFAULT;
	if (state.size != sizeof(state) || state.cpl > 3 ||
	    memchr_inv(state.reserved, 0, sizeof(state.reserved)) ||
	    !guest_tr_is_valid(&state.tr))
		return -EINVAL;
	if (vcpu->running)
		return -EBUSY;
	vcpu_ops->set_state(vcpu, &state);
	second_level_flush(&vcpu->second_level);
	return 0;
}

/*
 * Carries out DUNE_MAP_GRANULE. Not inline: @granule in its frame would give vcpu_ioctl(),
 * through which each DUNE_RUN comes, a stack protector.
 */
static noinline long
vcpu_map_granule(struct dune_vcpu *vcpu,
		 const struct dune_granule __user *argument)
{
	struct dune_granule granule;

	if (!second_level_granules())
		return -ENOTTY;
	if (copy_from_user(&granule, argument, sizeof(granule)))
		return -EFAULT;
	if (granule.size != sizeof(granule) || granule.flags)
		return -EINVAL;
	return second_level_map_granule(&vcpu->vm->second_level, granule.guest,
					granule.address);
}

/* Carries out DUNE_ADD_PRIVATE. Not inline, for the same reason as vcpu_map_granule(). */
static noinline long vcpu_add_private(struct dune_vcpu *vcpu,
				      struct dune_private __user *argument)
{
	struct private_pages pages = {};
	struct dune_private private;
	u64 gpa;
	int err;

	if (!second_level_private_pages())
		return -ENOTTY;
	if (copy_from_user(&private, argument, sizeof(private)))
		return -EFAULT;
	/* No more than one flag: DUNE_PRIVATE_SHOWN is the largest. */
	if (private.size != sizeof(private) || private.flags > DUNE_PRIVATE_SHOWN ||
	    (private.flags == DUNE_PRIVATE_SEALED && !private.address) ||
	    (private.flags == DUNE_PRIVATE_SHOWN && private.address))
		return -EINVAL;
	/* Pages whose address cannot be returned would be lost. */
	if (put_user(0, &argument->guest))
		return -EFAULT;
	pages.count = private.pages;
	pages.contents = (const void __user *)private.address;
	pages.sealed = private.flags & DUNE_PRIVATE_SEALED;
	pages.shown = private.flags & DUNE_PRIVATE_SHOWN;
	err = second_level_add_private(&vcpu->second_level, &pages, &gpa);
	return err ?: put_user(gpa, &argument->guest);
}

static int vcpu_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct dune_vcpu *vcpu = file->private_data;
	int err;

	if (!vcpu_is_mine(vcpu))
		return -EPERM;
	if (vma->vm_pgoff == DUNE_STUB_OFFSET >> PAGE_SHIFT)
		return stub_mmap(vma, vcpu->vm);
	if (vma->vm_pgoff || vma->vm_end - vma->vm_start != PAGE_SIZE ||
	    !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	if (vcpu->mapped)
		return -EBUSY;
	/* The page is never executable, not even by personality(READ_IMPLIES_EXEC). */
	vm_flags_clear(vma, VM_EXEC | VM_MAYEXEC);
	vm_flags_set(vma, VM_DONTCOPY | VM_DONTEXPAND);
	/* mmap() computed it from the old flags, and vm_insert_page() uses it for the entry. */
	vma->vm_page_prot = vm_get_page_prot(vma->vm_flags);
	err = vm_insert_page(vma, vma->vm_start, virt_to_page(vcpu->run));
	vcpu->mapped = !err;
	return err;
}

/* Carries out DUNE_SET_STUB. Not inline, for the same reason as vcpu_map_granule(). */
static noinline long vcpu_set_stub(struct dune_vcpu *vcpu,
				   struct dune_stub __user *argument)
{
	struct dune_stub stub;
	u64 gpa;
	long err;

	if (copy_from_user(&stub, argument, sizeof(stub)))
		return -EFAULT;
	if (stub.size != sizeof(stub) || stub.flags & ~DUNE_STUB_TEMPLATE || stub.reserved)
		return -EINVAL;
	/* A run page whose address cannot be returned would be lost. */
	if (put_user(0, &argument->run))
		return -EFAULT;
	err = stub_can_bind(vcpu, stub.address) ?: alone_bind(vcpu, &stub, &gpa);
	if (!err && stub.flags & DUNE_STUB_TEMPLATE)
		err = child_make_template(vcpu);
	if (err)
		return err;
	vcpu->stub = stub.address;
	return put_user(gpa, &argument->run);
}

static int vcpu_release(struct inode *inode, struct file *file)
{
	vcpu_free(file->private_data);
	return 0;
}

/* Carries out DUNE_RENEW_VCPU. Not inline, for the same reason as vcpu_map_granule(). */
static noinline long vcpu_renew(struct file *old,
				const struct dune_renew_vcpu __user *argument)
{
	struct dune_renew_vcpu renew;
	struct dune_vm *vm;
	struct file *file;
	int err;

	if (copy_from_user(&renew, argument, sizeof(renew)))
		return -EFAULT;
	if (renew.size != sizeof(renew) || renew.flags & ~DUNE_VCPU_FLAGS ||
	    renew.reserved)
		return -EINVAL;
	vm = vm_new();
	if (IS_ERR(vm))
		return PTR_ERR(vm);
	file = vcpu_open(vm, renew.flags);
	vm_put(vm);
	if (IS_ERR(file))
		return PTR_ERR(file);
	err = vcpu_replace_file(renew.fd, old, file);
	if (err)
		fput(file);
	return err;
}

static long vcpu_ioctl(struct file *file, unsigned int request,
		       unsigned long argument)
{
	struct dune_vcpu *vcpu = file->private_data;
	bool mine;
	long ret;

	if (request == DUNE_GET_INFO)
		return info_get((void __user *)argument);
	/* A thread can use its own vCPU. It can only renew a vCPU that it inherited. */
	mine = vcpu_is_mine(vcpu);
	if (request == DUNE_RENEW_VCPU)
		return mine ? -EPERM : vcpu_renew(file, (void __user *)argument);
	if (!mine)
		return -EPERM;
	switch (request) {
	case DUNE_RUN:
		if (argument || vcpu->stub)
			return -EINVAL;
		get_file(file);
		ret = min(run_vcpu(vcpu, false), 0L);
		fput(file);
		return ret;
	case DUNE_GET_STATE:
		return vcpu_get_state(vcpu, (void __user *)argument);
	case DUNE_SET_STATE:
		return vcpu_set_state(vcpu, (void __user *)argument);
	case DUNE_MAP_GRANULE:
		return vcpu_map_granule(vcpu, (void __user *)argument);
	case DUNE_ADD_PRIVATE:
		return vcpu_add_private(vcpu, (void __user *)argument);
	case DUNE_SET_STUB:
		return vcpu_set_stub(vcpu, (void __user *)argument);
	default:
		return -ENOTTY;
	}
}

const struct file_operations vcpu_fops = {
	.owner = THIS_MODULE,
	.release = vcpu_release,
	.unlocked_ioctl = vcpu_ioctl,
	.mmap = vcpu_mmap,
	.llseek = alone_run,
};
