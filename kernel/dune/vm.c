// SPDX-License-Identifier: GPL-2.0-only
/*
 * An address space: that of the process that opened /dev/dune, of a process that renewed a vCPU, or
 * of a child (child.c). Its vCPUs (vcpu.c) and its mapping of the stub (stub.c) keep it alive after
 * the file is closed (vm_file.c).
 */
#include <linux/file.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "dune/vm.h"

/*
 * Returns a new address space of the calling process, with one reference, or ERR_PTR(-ENOMEM).
 * Called in process context; may sleep.
 */
struct dune_vm *vm_new(void)
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
 * Prepares the second level, once. Called by a thread of the process before it adds a vCPU; may
 * sleep. Only a fatal signal ends the wait for the lock of the process's memory. Returns 0 or a
 * negative errno.
 */
int vm_prepare(struct dune_vm *vm)
{
	int err;

	if (mutex_lock_killable(&vm->lock))
		return -EINTR;
	err = vm->prepared ? 0 : second_level_get(&vm->second_level);
	vm->prepared = !err;
	mutex_unlock(&vm->lock);
	return err;
}

/*
 * Returns a new address space for a child of the calling process that does not exist yet, or
 * ERR_PTR(-ENOMEM). May sleep.
 */
struct dune_vm *vm_new_child(void)
{
	struct dune_vm *vm = vm_new();

	if (!IS_ERR(vm))
		vm->unborn = true;
	return vm;
}

/*
 * Makes @vm, of vm_new_child(), the address space of the calling process, which is the child. May
 * sleep. Returns 0 or a negative errno; with -ERESTARTNOINTR it can be called again.
 */
int vm_settle(struct dune_vm *vm)
{
	struct mm_struct *mm = current->mm;
	int err;

	second_level_move_private(&vm->second_level, mm);
	mmgrab(mm);
	mmdrop(vm->mm);
	vm->mm = mm;
	err = vm_prepare(vm);
	if (!err)
		err = second_level_inherit(&vm->second_level);
	if (!err)
		vm->unborn = false;
	return err;
}

static void vm_free(struct kref *kref)
{
	struct dune_vm *vm = container_of(kref, struct dune_vm, kref);

	if (vm->template)
		fput(vm->template);
	second_level_put(&vm->second_level);
	mmdrop(vm->mm);
	kfree(vm);
}

/* Takes another reference. For any context. */
void vm_get(struct dune_vm *vm)
{
	kref_get(&vm->kref);
}

/* Drops a reference; the last one frees the address space. Called in process context. */
void vm_put(struct dune_vm *vm)
{
	kref_put(&vm->kref, vm_free);
}
