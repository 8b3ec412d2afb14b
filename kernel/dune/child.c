// SPDX-License-Identifier: GPL-2.0-only
/*
 * The vCPU of a child process or thread, for a guest without a host half (alone.c). The guest makes
 * it by a hypercall, before it makes the child by a call in the stub (<linux/dune.h> has the
 * contract). Until the child has entered it (birth.c), the vCPU is unborn: it has no thread. The
 * module also makes two that no hypercall asks for: the template, from a vCPU that is bound with
 * DUNE_STUB_TEMPLATE, and a copy of the template at each execve (exec.c).
 *
 * An unborn vCPU has no descriptor, so no process can be given one. This is where it is meanwhile:
 *  - in its maker, as dune_vcpu.child, until the maker's thread has made the child;
 *  - then, if the child has a copy of the memory, in the child's mapping of the stub, where the
 *    fork itself puts it (stub.c), so that no other process can have it. It goes with the mapping
 *    if the child dies before it has entered;
 *  - a template: in dune_vm.template of the process that bound the vCPU and of its children. No
 *    thread enters it.
 */
#include <linux/err.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>

#include "dune/child.h"
#include "dune/stub.h"
#include "dune/vcpu.h"
#include "dune/vcpu_ops.h"
#include "dune/vm.h"

/* Returns whether the child that will enter @child has its own copy of @parent's memory. */
static bool has_copy(const struct dune_vcpu *child, const struct dune_vcpu *parent)
{
	return child->vm != parent->vm;
}

/* Gives @child the state of @parent, which is not in a run. Returns 0 or -EAGAIN. */
static int copy_state(struct dune_vcpu *child, struct dune_vcpu *parent)
{
	struct dune_state state = { .size = sizeof(state) };
	int err = vcpu_ops->get_state(parent, &state);

	if (err)
		return err;
	vcpu_ops->set_state(child, &state);
	child->run->regs = parent->run->regs;
	child->run->regs.rax = 0;
	child->run->flags = parent->run->flags;
	child->stub = parent->stub;
	child->pkru = parent->pkru;
	child->signal_vector = parent->signal_vector;
	child->mapped = parent->mapped;
	return 0;
}

/*
 * Returns a vCPU with a copy of @parent's private memory and, unless @parent is a template, of its
 * granules, or an ERR_PTR(). Its run page is where @parent has its own.
 */
static struct dune_vcpu *make_copy(struct dune_vcpu *parent)
{
	struct dune_vm *vm = vm_new_child();
	struct dune_vcpu *child;
	int err;

	if (IS_ERR(vm))
		return ERR_CAST(vm);
	if (parent->vm->template)
		vm->template = get_file(parent->vm->template);
	child = vcpu_alloc(vm, parent->smap, NULL);
	vm_put(vm);
	if (IS_ERR(child))
		return child;
	err = second_level_copy(&vm->second_level, &parent->vm->second_level,
				virt_to_page(parent->run), virt_to_page(child->run));
	if (err) {
		vcpu_free(child);
		return ERR_PTR(err);
	}
	return child;
}

/* Returns a vCPU of @parent's address space, or an ERR_PTR(). */
static struct dune_vcpu *make_shared(struct dune_vcpu *parent)
{
	struct second_level *space = &parent->vm->second_level;
	struct page *run = second_level_take_run(space);
	struct dune_vcpu *child = vcpu_alloc(parent->vm, parent->smap, run);
	struct private_pages pages = {};
	int err = 0;
	u64 gpa;

	if (IS_ERR(child))
		return child;
	if (!run) {
		pages.run_page = virt_to_page(child->run);
		err = second_level_add_private(&parent->second_level, &pages, &gpa);
	}
	if (!err)
		err = vcpu_join(child);
	if (!err)
		return child;
	vcpu_free(child);
	return ERR_PTR(err);
}

/* Returns the file of a new unborn vCPU, or an ERR_PTR(). */
static struct file *make(struct dune_vcpu *parent, bool shared, u64 rip)
{
	struct dune_vcpu *child = shared ? make_shared(parent) : make_copy(parent);
	int err;

	if (IS_ERR(child))
		return ERR_CAST(child);
	err = copy_state(child, parent);
	if (err) {
		vcpu_free(child);
		return ERR_PTR(err);
	}
	child->run->regs.rip = rip;
	if (shared)
		child->run->regs.rdi = second_level_run_gpa(virt_to_page(child->run));
	return vcpu_make_file(child);
}

/*
 * Carries out the hypercall in @vcpu->frame, by which the run has ended: it makes an unborn vCPU.
 * The thread must then go to user mode, where the kernel closes the file of an earlier one, before
 * it enters the guest again. For the vCPU's thread; may sleep.
 */
void child_serve(struct dune_vcpu *vcpu)
{
	bool shared = vcpu->frame.orig_ax == DUNE_MAKE_SHARED_CHILD;
	struct file *file = make(vcpu, shared, vcpu->frame.di), *old;

	vcpu->run->regs.rax = PTR_ERR_OR_ZERO(file);
	if (IS_ERR(file))
		return;
	old = xchg(&vcpu->child, file);
	if (old)
		fput(old);
}

/*
 * Makes an unborn vCPU from @vcpu as it is now, before its first run: the template of what the
 * process executes. Returns 0 or a negative errno. May sleep.
 */
int child_make_template(struct dune_vcpu *vcpu)
{
	struct file *file = make(vcpu, false, vcpu->run->regs.rip);

	if (IS_ERR(file))
		return PTR_ERR(file);
	if (!cmpxchg(&vcpu->vm->template, NULL, file))
		return 0;
	fput(file);
	return -EEXIST;
}

/*
 * Returns the file of a new unborn vCPU like the template of @vm, and with the same template, or an
 * ERR_PTR(). Several processes may do this at the same time: nothing changes the template. May
 * sleep.
 */
struct file *child_of_template(struct dune_vm *vm)
{
	struct dune_vcpu *template = vcpu_of(vm->template);
	struct file *file = make(template, false, template->run->regs.rip);

	if (!IS_ERR(file))
		vcpu_of(file)->vm->template = get_file(vm->template);
	return file;
}

/*
 * Takes the unborn vCPU from @parent, if it is of the kind: @copy as has_copy(). One of the other
 * kind is lost. Returns its file, to which the caller gets a reference, or NULL.
 */
struct file *child_take(struct dune_vcpu *parent, bool copy)
{
	struct file *file = xchg(&parent->child, NULL);

	if (!file || has_copy(vcpu_of(file), parent) == copy)
		return file;
	fput(file);
	return NULL;
}

/*
 * The calling thread is in a fork, which copies the mapping of @stub. Returns the file of the
 * unborn vCPU that it has made for the child, or NULL. Does not sleep.
 */
struct file *child_of_fork(unsigned long stub)
{
	const struct pt_regs *regs = task_pt_regs(current);
	struct file *file, *child = NULL;
	struct dune_vcpu *vcpu;

	if (regs->ip != stub + DUNE_STUB_CALL + STUB_CALL_LENGTH)
		return NULL;
	file = fget(regs->bx);
	if (!file)
		return NULL;
	vcpu = vcpu_of(file);
	if (vcpu && vcpu_is_mine(vcpu) && vcpu->stub == stub)
		child = child_take(vcpu, true);
	fput(file);
	return child;
}
