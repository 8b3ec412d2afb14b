// SPDX-License-Identifier: GPL-2.0-only
/*
 * An open /dev/dune is an address space: that of the process that opened it.
 * The address space's vCPUs (vcpu.c) keep it alive after the file is closed.
 */
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <asm/cpufeature.h>
#include <asm/fpu/xcr.h>

#include "dune/guest_state.h"
#include "dune/hypercall.h"
#include "dune/vcpu.h"
#include "dune/vcpu_ops.h"
#include "dune/vm.h"

struct dune_vm *dune_vm_new(void)
{
	struct dune_vm *vm = kzalloc(sizeof(*vm), GFP_KERNEL_ACCOUNT);
	int err;

	if (!vm)
		return ERR_PTR(-ENOMEM);
	vm->mm = current->mm;
	err = second_level_get(&vm->second_level);
	if (err) {
		kfree(vm);
		return ERR_PTR(err);
	}
	kref_init(&vm->kref);
	mmgrab(vm->mm);
	return vm;
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

void dune_vm_get(struct dune_vm *vm)
{
	kref_get(&vm->kref);
}

void dune_vm_put(struct dune_vm *vm)
{
	kref_put(&vm->kref, dune_vm_free);
}

static int dune_vm_release(struct inode *inode, struct file *file)
{
	dune_vm_put(file->private_data);
	return 0;
}

static u64 handled_signals(void)
{
	u64 handled = 0;
	int i;

	spin_lock_irq(&current->sighand->siglock);
	for (i = 0; i < _NSIG; i++) {
		__sighandler_t handler =
			current->sighand->action[i].sa.sa_handler;

		if (handler != SIG_DFL && handler != SIG_IGN)
			handled |= BIT_ULL(i);
	}
	spin_unlock_irq(&current->sighand->siglock);
	return handled;
}

long dune_get_info(struct dune_info __user *argument)
{
	struct dune_info info = { .size = sizeof(info) };
	u32 size;

	if (get_user(size, &argument->size))
		return -EFAULT;
	if (size != sizeof(info))
		return -EINVAL;
	info.api_version = DUNE_API_VERSION;
	info.run_size = PAGE_SIZE;
	info.handled_signals = handled_signals();
	if (hypercall_is_fast())
		info.features |= DUNE_FEATURE_FAST_SYSCALL;
	if (boot_cpu_has(X86_FEATURE_SMEP))
		info.features |= DUNE_FEATURE_SMEP;
	if (boot_cpu_has(X86_FEATURE_SMAP))
		info.features |= DUNE_FEATURE_SMAP;
	info.vendor = vcpu_ops->vendor;
	/*
	 * With fewer bits and without granules, a guest that uses a higher address of
	 * the process faults or is refused: its page tables must not lead there.
	 */
	info.address_bits = min_t(u32, guest_address_bits(), PROCESS_BITS);
	info.granules = second_level_granules();
	info.guest_cr0 = DUNE_GUEST_CR0;
	info.guest_cr4 = guest_cr4(false);
	info.guest_efer = vcpu_ops->efer;
	if (info.guest_cr4 & X86_CR4_PCIDE)
		info.features |= DUNE_FEATURE_PCID;
	if (boot_cpu_has(X86_FEATURE_OSXSAVE))
		info.xcr0 = xgetbv(XCR_XFEATURE_ENABLED_MASK);
	if (copy_to_user(argument, &info, sizeof(info)))
		return -EFAULT;
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
