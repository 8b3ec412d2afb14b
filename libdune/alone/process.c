// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * fork, vfork, clone and execve without a host half. The module makes the child's vCPU before the
 * child (struct dune_stub in <linux/dune.h>); the child enters it by the stub, at an address in
 * child.S, with the registers and the state of its parent.
 *
 * A child with memory of its own has a copy of its parent's block. A child that shares memory
 * (vfork, posix_spawn) uses its parent's block itself, since the parent waits meanwhile. It starts
 * below its parent on the ring-0 stack. The parent has a copy of the members that the child
 * changes, and puts them back. Such a child makes no other child that shares memory.
 */
#include "process.h"
#include "alone.h"
#include "child.h"
#include "fork.h"
#include "place.h"

/* A child that shares memory needs this much of the ring-0 stack. */
#define CHILD_STACK	(12 * 1024)

/* Fills in the call by which child.S makes the child. The child needs no stack in user mode. */
static void describe(struct dune_child *child, struct dune_clone *c)
{
	child->c = c;
	child->nr = DUNE_HOSTCALL | c->nr;
	if (c->nr == __NR_clone3) {
		c->args.flags = c->flags;
		c->args.tls = 0;
		c->args.stack = 0;
		c->args.stack_size = 0;
		child->args[0] = dune_alone_show(&c->args, sizeof(c->args));
		child->args[1] = c->args_size;
		return;
	}
	child->args[0] = c->flags | c->args.exit_signal;
	child->args[2] = c->args.parent_tid;
	child->args[3] = c->args.child_tid;
}

/*
 * What each child does first. @tf: its frame, with which it continues after its parent's call, with
 * the result 0.
 */
static void start(struct dune_thread *t, struct dune_tf *tf, const struct dune_child *child)
{
	const struct dune_clone *c = child->c;

	wrmsr(MSR_FS_BASE, c->fs_base);
	if (c->flags & CLONE_CLEAR_SIGHAND)
		dune_actions_clear(t->sighand);
	tf->rax = 0;
	if (c->child_rsp)
		tf->rsp = c->child_rsp;
}

/*
 * Makes a child with memory of its own independent of its parent's frames. If the parent shared the
 * memory of its own parent, it ran below that one's frames, perhaps with actions of its own: here
 * the ring-0 stack begins at its top again, and the actions move to dune_process. Returns the
 * frame, which was at @tf.
 */
static struct dune_tf *stand_alone(struct dune_thread *t, const struct dune_tf *tf)
{
	struct dune_tf *top = (struct dune_tf *)((u64)t + RING0_STACK_TOP) - 1;

	*top = *tf;
	t->ring0_top = (u64)(top + 1);
	if (t->sighand != &dune_process.sighand) {
		dune_process.sighand = *t->sighand;
		t->sighand = &dune_process.sighand;
	}
	return top;
}

/* The start of a child with a copy of the memory. Returns its frame. Called by child.S. */
struct dune_tf *dune_child_copied(struct dune_child *child)
{
	struct dune_thread *t = dune_self();
	struct dune_tf *tf;

	dune_fork_unlock(t);
	tf = stand_alone(t, child->c->tf);
	dune_fork_begin(t);
	t->migrations = 0;
	/* No copy of a call that is under way is needed, also not a parent's. */
	dune_copies_release(t->copies.start_mark);
	start(t, tf, child);
	return tf;
}

/*
 * The start of a child that shares memory, with its frame to be at @tf, below which is its stack.
 * @run: the guest-physical address of its run page. Called by child.S.
 */
void dune_child_shared(struct dune_child *child, u64 run, struct dune_tf *tf)
{
	const struct dune_clone *c = child->c;
	struct dune_thread *t = dune_self();
	int i;

	for (i = 0; i < DUNE_COUNT_MAX; i++)
		dune_process.old_counters[i] += t->run->counters[i];
	child->run = table_at(run);
	t->run = child->run;
	t->migrations = 0;
	t->ring0_top = (u64)(tf + 1);
	if (!(c->flags & CLONE_SIGHAND)) {
		child->sighand = *t->sighand;
		child->sighand.lock.holder = 0;
		t->sighand = &child->sighand;
	}
	*tf = *c->tf;
	dune_copies_release(child->mark);
	start(t, tf, child);
}

/*
 * Puts back what a child that shared memory has changed, when that child has ended or has executed
 * a program.
 */
static void after_shared(struct dune_thread *t, const struct dune_child *child)
{
	int i;

	dune_fork_release(t, t);
	for (i = 0; i < DUNE_COUNT_MAX; i++)
		dune_process.old_counters[i] = child->old_counters[i] +
					       (child->run ? child->run->counters[i] : 0);
	if (child->c->flags & CLONE_SIGHAND)
		dune_actions_repair(t);
}

static long make_shared(struct dune_thread *t, struct dune_child *child)
{
	u8 members[IST_BOTTOM];
	long ret;

	/* The parent of a child that shares memory waits only until that child is gone. */
	if (!(child->c->flags & CLONE_VFORK) ||
	    t->ring0_top != (u64)t + RING0_STACK_TOP)
		return -ENOSYS;
	if ((u64)__builtin_frame_address(0) <
	    (u64)t + RING0_STACK_BOTTOM + RING0_STACK_GUARD + CHILD_STACK)
		return -EAGAIN;
	memcpy(members, t, sizeof(members));
	memcpy(child->old_counters, dune_process.old_counters, sizeof(child->old_counters));
	ret = dune_alone_clone(MAKE_SHARED_CHILD, child);
	memcpy(t, members, sizeof(members));
	after_shared(t, child);
	return ret;
}

static long make_copied(struct dune_thread *t, struct dune_child *child)
{
	long ret;

	/* While LOCK_ARENA is held, no page of this stack can be added. */
	if (!dune_page_need((u8 *)__builtin_frame_address(0) - PAGE))
		return -EAGAIN;
	dune_fork_lock(t);
	ret = dune_alone_clone(MAKE_CHILD, child);
	dune_fork_unlock(t);
	return ret;
}

/* Implements @make_child of struct dune_services. */
long dune_alone_make_child(struct dune_clone *c)
{
	struct dune_thread *t = dune_self();
	struct dune_child child;
	long ret;

	memset(&child, 0, sizeof(child));
	child.mark = dune_copies_mark();
	describe(&child, c);
	if (c->flags & CLONE_VM)
		ret = make_shared(t, &child);
	else
		ret = make_copied(t, &child);
	/* In C the parent alone comes here. */
	dune_copies_release(child.mark);
	if (child.again) {
		t->call_again = 1;
		return DUNE_AGAIN;
	}
	if (ret > 0)
		__atomic_fetch_add(&dune_process.forks, 1, __ATOMIC_RELAXED);
	return ret;
}

/* Implements @execute of struct dune_services. */
long dune_alone_execute(long fd, long name, long argv, long envp, long flags)
{
	struct dune_thread *t = dune_self();
	long ret;

	dune_actions_ignore_for_exec(t);
	/* R9: the stub, the scratch and the frames stay mapped (<linux/dune.h>) */
	ret = dune_syscall_forward(DUNE_HOSTCALL | __NR_execveat, fd, name, argv, envp, flags,
				   dune_process.super_size);
	dune_actions_handle_again(t);
	return ret;
}
