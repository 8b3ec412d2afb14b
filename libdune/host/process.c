// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * fork, vfork and clone in the host half. The guest half (guest/process.c)
 * describes the child in a struct dune_clone.
 *
 * A child with memory of its own (fork) has a copy of its parent's block, and
 * continues in it. A child that shares memory (vfork, posix_spawn) gets a new
 * block. The parent frees that block when the kernel lets it continue, because
 * the child has executed another program or is dead by then. Either child makes
 * a vCPU of its own in the place of its parent's descriptor. This needs nothing
 * that the child may have given up or used up: a path, rights, a free descriptor. (A child with
 * CLONE_FILES would take the vCPU from its parent, and opens the device instead.)
 * The child starts in the guest with the parent's frame, in which the result is 0.
 *
 * common/lock.h describes how fork and vfork treat the library's locks.
 */
#include "fork.h"
#include "host.h"

/* Makes the new vCPU of @child start where @tf is loaded (guest/entry.S). */
static void start_at(struct dune_thread *child, struct dune_tf *tf, const struct dune_clone *c)
{
	memset(&child->regs, 0, sizeof(child->regs));
	child->regs.rip = (u64)dune_tf_resume;
	child->regs.rsp = (u64)tf;
	child->regs.rflags = RFLAGS_RING0;
	child->child_tf = tf;
	child->child_rsp = c->child_rsp;
	child->child_flags = c->flags;
	child->state.fs.base = c->fs_base;
}

/* Returns a block for a child that shares memory with @t, or NULL if the arena is full. */
static struct dune_thread *new_block(struct dune_thread *t, const struct dune_clone *c)
{
	struct dune_thread *child = dune_thread_new();
	struct dune_tf *tf;
	u64 flags;

	if (!child)
		return NULL;
	if (c->flags & CLONE_SIGHAND) {
		child->sighand = t->sighand;
	} else {
		flags = dune_lock(&t->sighand->lock);
		child->own_sighand = *t->sighand;
		dune_unlock(&t->sighand->lock, flags);
		child->own_sighand.lock.holder = 0;
		child->sighand = &child->own_sighand;
	}
	if (c->flags & CLONE_VFORK) {
		child->altstack = t->altstack;
		child->leave_rsp = t->leave_rsp;
	}
	child->ring0_fs = t->ring0_fs;
	child->files = c->flags & CLONE_FILES ? t->files : child;
	child->vcpu = t->vcpu;		/* the parent's, to renew */
	child->state = t->state;
	child->root = t->root;
	dune_state_move(child, &child->state);
	tf = (struct dune_tf *)(child->ring0_top - TF_SIZE);
	*tf = *c->tf;
	start_at(child, tf, c);
	return child;
}

/*
 * Makes the system call. @stack: the top of the child's host stack, or 0 for a copy of this
 * one. Returns its result in the parent, or DUNE_AGAIN; the child is in dune_host_child().
 */
static long do_clone(struct dune_thread *t, struct dune_clone *c, u64 stack)
{
	if (c->nr == __NR_clone3) {
		c->args.flags = c->flags;
		c->args.tls = 0;
		c->args.stack = stack ? stack - HOST_STACK_TOP : 0;
		c->args.stack_size = stack ? HOST_STACK_TOP : 0;
		return dune_host_clone(t, c->nr, (long)&c->args, c->args_size, 0, 0, 0);
	}
	return dune_host_clone(t, c->nr, c->flags | c->args.exit_signal, stack,
			       c->args.parent_tid, c->args.child_tid, 0);
}

/*
 * Closes the vCPU of @child, which is gone, if the descriptors that it shared with @t
 * (CLONE_FILES) still have it. A child that no longer shared them may have moved its vCPU to a
 * number that is another file here: EPERM means a vCPU that this thread did not make.
 */
static void close_vcpu_of(const struct dune_thread *child, struct dune_thread *t)
{
	if (child->vcpu != t->vcpu &&
	    sys3(__NR_ioctl, child->vcpu, DUNE_GET_STATE, (long)&t->state) == -EPERM)
		sys3(__NR_close, child->vcpu, 0, 0);
}

static long clone_shared(struct dune_thread *t, struct dune_clone *c)
{
	struct dune_thread *child;
	long ret;

	dune_page_complete();
	child = new_block(t, c);
	if (!child)
		return -ENOMEM;
	ret = do_clone(t, c, (u64)child + HOST_STACK_TOP);
	if (c->flags & CLONE_VFORK)
		dune_fork_release(child, t);
	if (c->flags & CLONE_SIGHAND)
		dune_actions_repair(t);
	if ((c->flags & CLONE_VFORK) && (c->flags & CLONE_FILES))
		close_vcpu_of(child, t);
	/*
	 * Without CLONE_VFORK the child is using its block, and the parent does not learn when
	 * that ends: the block is never freed, and with CLONE_FILES its vCPU stays open.
	 */
	if (ret < 0 || (c->flags & CLONE_VFORK))
		dune_thread_free(child);
	return ret;
}

/*
 * With CLONE_VFORK all locks are held until the child has executed a program or ended, because the
 * parent waits in the kernel for that long (dune.h has the consequence).
 */
static long clone_copied(struct dune_thread *t, struct dune_clone *c)
{
	struct dune_run *run = t->run;
	long ret;

	dune_fork_lock(t);
	start_at(t, c->tf, c);
	/* A signal may arrive in the child before it has a vCPU. */
	WRITE_ONCE(t->run, NULL);
	ret = do_clone(t, c, 0);
	WRITE_ONCE(t->run, run);
	dune_fork_unlock(t);
	return ret;
}

/* Carries out HC_CLONE. Returns the result of the call in the parent, or DUNE_AGAIN. */
long dune_host_fork(struct dune_thread *t, struct dune_clone *c)
{
	long ret;

	t->state.size = sizeof(t->state);
	ret = sys3(__NR_ioctl, t->vcpu, DUNE_GET_STATE, (long)&t->state);
	if (ret)
		return ret;
	if (c->flags & CLONE_VM)
		ret = clone_shared(t, c);
	else
		ret = clone_copied(t, c);
	if (ret > 0)
		__atomic_fetch_add(&dune_process.forks, 1, __ATOMIC_RELAXED);
	/* With interrupts off no handler can run before a second try. */
	if (ret == DUNE_AGAIN && t->run->regs.rip != (u64)dune_calls.forward_call)
		ret = -EAGAIN;
	return ret;
}

/*
 * Prepares a child with a copy of memory, whose one thread @t has not done anything yet. No
 * signal was queued when the child was made (dune_host_clone()). One that is
 * queued now was sent to the child itself.
 */
static void start_process(struct dune_thread *t)
{
	dune_fork_unlock(t);
	dune_thread_cover_others(t);
	dune_fork_begin(t);
}

/*
 * The start of a new process, which may share all memory but the stack with its parent. Its host
 * half begins when this returns (dune_host_begin in entry.S).
 */
void dune_host_child(struct dune_thread *t)
{
	const char *why;
	long err;

	if (!(t->child_flags & CLONE_VM))
		start_process(t);
	if (t->child_flags & CLONE_CLEAR_SIGHAND)
		dune_actions_clear(t->sighand);
	t->child_tf->rax = 0;
	if (t->child_rsp)
		t->child_tf->rsp = t->child_rsp;
	/* A child that shares the parent's descriptors must not renew the parent's vCPU. */
	if (t->child_flags & CLONE_FILES)
		err = dune_vcpu_open(t, dune_device_open(&why));
	else
		err = dune_vcpu_renew(t);
	if (err)
		dune_host_fatal(t, "a child could not enter guest mode", err, SIGKILL);
}
