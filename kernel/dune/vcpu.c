// SPDX-License-Identifier: GPL-2.0-only
/*
 * A vCPU is a file, which is gone with its last reference. One thread uses it: the one that made
 * it, or the child for which it was made (child.c). This file makes vCPUs and their files;
 * vcpu_file.c has the operations on such a file.
 */
#include <linux/anon_inodes.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/nospec.h>
#include <linux/preempt.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "dune/vcpu.h"
#include "dune/vcpu_ops.h"
#include "dune/vm.h"
#include "x86/registers.h"

/* The world switches use x86/registers.h on dune_run.regs. */
#define CHECK_REG(name, member) \
	static_assert(REGS_##name == offsetof(struct dune_regs, member))

CHECK_REG(RAX, rax);
CHECK_REG(RCX, rcx);
CHECK_REG(RDX, rdx);
CHECK_REG(RBX, rbx);
CHECK_REG(RBP, rbp);
CHECK_REG(RSI, rsi);
CHECK_REG(RDI, rdi);
CHECK_REG(R(8), r8);
CHECK_REG(R(15), r15);

/* Gives up a vCPU's reference to its run page. */
static void drop_run(struct dune_vm *vm, struct page *run)
{
	second_level_leave_run(&vm->second_level, run);
	__free_page(run);
}

/* Frees a vCPU that will not run any more, and has no file or is losing it. May sleep. */
void vcpu_free(struct dune_vcpu *vcpu)
{
	if (vcpu->child)
		fput(vcpu->child);
	if (vcpu->hw)
		vcpu_ops->destroy(vcpu);
	second_level_remove_vcpu(&vcpu->second_level);
	drop_run(vcpu->vm, virt_to_page(vcpu->run));
	if (vcpu->task)
		put_task_struct(vcpu->task);
	vm_put(vcpu->vm);
	kfree(vcpu);
}

/* Returns the vCPU of @file, or NULL if it is another kind of file. For any context. */
struct dune_vcpu *vcpu_of(const struct file *file)
{
	return file->f_op == &vcpu_fops ? file->private_data : NULL;
}

/*
 * Returns a vCPU without a thread, a file and a second level, or ERR_PTR(-ENOMEM). @run: its run
 * page, a reference to which is taken over in any case; or NULL for a new one. Called in process
 * context; may sleep.
 */
struct dune_vcpu *vcpu_alloc(struct dune_vm *vm, bool smap, struct page *run)
{
	struct dune_vcpu *vcpu = kzalloc(sizeof(*vcpu), GFP_KERNEL_ACCOUNT);

	if (!run)
		run = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!run || !vcpu) {
		if (run)
			drop_run(vm, run);
		kfree(vcpu);
		return ERR_PTR(-ENOMEM);
	}
	vm_get(vm);
	vcpu->vm = vm;
	vcpu->smap = smap;
	vcpu->run = page_address(run);
	vcpu->cpu = -1;
	preempt_notifier_init(&vcpu->notifier, &run_preempt_ops);
	if (vcpu_ops->create(vcpu)) {
		vcpu_free(vcpu);
		return ERR_PTR(-ENOMEM);
	}
	return vcpu;
}

/*
 * Gives the vCPU the second level of its address space, that of the calling process. May sleep.
 * Returns 0 or a negative errno.
 */
int vcpu_join(struct dune_vcpu *vcpu)
{
	int err = vm_prepare(vcpu->vm);

	if (!err)
		err = second_level_add_vcpu(&vcpu->vm->second_level, &vcpu->second_level);
	if (!err)
		vcpu_ops->set_root(vcpu, second_level_root(&vcpu->second_level));
	return err;
}

/* Returns a file for @vcpu, or an ERR_PTR() after vcpu_free(). May sleep. */
struct file *vcpu_make_file(struct dune_vcpu *vcpu)
{
	struct file *file = anon_inode_getfile("[dune-vcpu]", &vcpu_fops, vcpu, O_RDWR);

	if (IS_ERR(file))
		vcpu_free(vcpu);
	return file;
}

/* Returns an open vCPU of the calling thread, or an ERR_PTR(). */
struct file *vcpu_open(struct dune_vm *vm, u32 flags)
{
	struct dune_vcpu *vcpu = vcpu_alloc(vm, flags & DUNE_VCPU_SMAP, NULL);
	int err;

	if (IS_ERR(vcpu))
		return ERR_CAST(vcpu);
	err = vcpu_join(vcpu);
	if (err) {
		vcpu_free(vcpu);
		return ERR_PTR(err);
	}
	vcpu->task = get_task_struct(current);
	return vcpu_make_file(vcpu);
}

/*
 * Makes a vCPU of the calling thread. @flags: some of DUNE_VCPU_FLAGS, which the caller has
 * checked. Called in process context; may sleep. Returns the vCPU's file descriptor, or a
 * negative errno.
 */
int vcpu_create(struct dune_vm *vm, u32 flags)
{
	int fd = get_unused_fd_flags(O_CLOEXEC);
	struct file *file;

	if (fd < 0)
		return fd;
	file = vcpu_open(vm, flags);
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	fd_install(fd, file);
	return fd;
}

/*
 * Puts @file at number @fd, in the place of @old. dup2() does this with a file that already
 * has a number; @file has none. Returns 0, and then takes over the reference to @file, or
 * -EBADF if @old is not at @fd.
 *
 * The system call of a process with one thread has no reference to @old, and here the table's goes.
 * Any other holder may drop the last one, so a caller that uses @old afterwards needs a reference
 * of its own (alone_run()).
 */
int vcpu_replace_file(unsigned int fd, struct file *old, struct file *file)
{
	struct files_struct *files = current->files;
	struct fdtable *fdt;

	spin_lock(&files->file_lock);
	fdt = files_fdtable(files);
	if (fd >= fdt->max_fds ||
	    rcu_access_pointer(fdt->fd[array_index_nospec(fd, fdt->max_fds)]) != old) {
		spin_unlock(&files->file_lock);
		return -EBADF;
	}
	rcu_assign_pointer(fdt->fd[fd], file);
	__set_bit(fd, fdt->close_on_exec);
	spin_unlock(&files->file_lock);
	filp_close(old, files);
	return 0;
}
