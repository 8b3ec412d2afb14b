// SPDX-License-Identifier: GPL-2.0-only
/*
 * How an unborn vCPU (child.c) gets its thread: the child process or thread for which it was made,
 * or one that executes a program (exec.c).
 *
 * A child executes nothing but the stub. Its first lseek() names its maker's vCPU, which is not
 * its own. This makes the unborn vCPU the thread's own, and puts it in the descriptor's place. So
 * the child needs no path and no right, and a free descriptor only if it shares its maker's table
 * (CLONE_FILES).
 */
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/sched/task_stack.h>

#include "dune/birth.h"
#include "dune/child.h"
#include "dune/stub.h"
#include "dune/vcpu.h"
#include "dune/vm.h"

/*
 * Puts @file, of the thread's vCPU, in the place of @old, its maker's. If the maker has the same
 * table of descriptors, @file gets another number, which the stub finds in the thread's registers.
 * Returns 0, and then takes over the reference to @file, or a negative errno.
 */
static int place(struct file *old, const struct dune_vcpu *parent, struct file *file)
{
	struct pt_regs *regs = task_pt_regs(current);
	int fd;

	if (READ_ONCE(parent->task->files) != current->files)
		return vcpu_replace_file(regs->bx, old, file);
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	fd_install(fd, file);
	regs->bx = fd;
	regs->di = fd;
	return 0;
}

/*
 * Makes the calling thread the thread of @child, which it has taken. Returns 0 or a negative errno;
 * with -ERESTARTNOINTR it can be called again.
 */
int birth_finish(struct dune_vcpu *child)
{
	int err = 0;

	if (child->vm->unborn)
		err = vm_settle(child->vm);
	if (!err && !child->second_level.space)
		err = vcpu_join(child);
	if (!err)
		child->task = get_task_struct(current);
	return err;
}

/**
 * birth_enter() - the first lseek() of a child
 * @file:	of its maker's vCPU
 * @parent:	this vCPU, which is not of the calling thread
 *
 * The stub then calls lseek() again with the same arguments, for the thread's own vCPU. If a signal
 * or a tracer has interrupted this one, the kernel restarts it. If it fails, the stub ends the
 * child.
 *
 * Context: process, in lseek(); may sleep.
 * Return: 0, and the thread continues at DUNE_STUB_ENTER; a negative errno, -EPERM if there is no
 * unborn vCPU for the caller, or if the caller is not the stub.
 */
loff_t birth_enter(struct file *file, struct dune_vcpu *parent)
{
	bool copy = current->mm != parent->vm->mm;
	struct file *child;
	int err;

	if (!stub_enters(parent))
		return -EPERM;
	child = copy ? stub_take_child(parent->stub) : child_take(parent, false);
	if (!child)
		return -EPERM;
	err = birth_finish(vcpu_of(child));
	if (!err)
		err = place(file, parent, child);
	if (!err) {
		stub_go_to(parent, task_pt_regs(current), DUNE_STUB_ENTER);
		return 0;
	}
	if (err != -ERESTARTNOINTR || !stub_put_child(parent->stub, child))
		fput(child);
	return err;
}
