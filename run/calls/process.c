// SPDX-License-Identifier: MIT OR Apache-2.0
/* Making and ending processes. The checks are here; libdune does the work. */
#include "calls.h"
#include "copies.h"
#include "exec.h"
#include "hidden.h"
#include "stats.h"
#include "super_range.h"
#include "sys.h"
#include "user_memory.h"

#include <asm/unistd.h>
#include <linux/sched.h>

/*
 * This process runs in its parent's memory (vfork), which still exists when this process ends. A
 * child does not return from make_child(): libdune lets it continue after its system call. So the
 * parent sets this before the child runs, and puts its own value back afterwards.
 */
static bool shares_parents_memory;

/*
 * A parent's robust list. The kernel walks it when the parent dies, and would
 * write to the places that the list names, in memory that the child still runs in.
 */
struct robust {
	u64 head, len;
};

/* Returns 0, or the error because of which the kernel may still have the list. */
static long drop_robust_list(struct robust *list)
{
	u64 room = result_room(sizeof(*list));
	long err = SYS3(__NR_get_robust_list, 0, room, room + offsetof(struct robust, len));

	err = take_result(list, room, sizeof(*list), err);
	if (err || !list->head)
		return err;
	return SYS2(__NR_set_robust_list, 0, list->len);
}

static void restore_robust_list(const struct robust *list)
{
	if (list->head)
		SYS2(__NR_set_robust_list, list->head, list->len);
}

/* The state that a parent restores after a vfork child, which runs in its memory. */
struct parent {
	struct robust robust;
	struct hidden_table hidden;
};

/* Returns 0, or an error: then no child may share the memory. */
static long before_vfork(struct parent *parent)
{
	long err = drop_robust_list(&parent->robust);

	if (!err)
		hidden_save(&parent->hidden);
	return err;
}

static void after_vfork(const struct parent *parent)
{
	restore_robust_list(&parent->robust);
	hidden_restore(&parent->hidden);
	exec_free_vectors();
}

/* Pass the call to libdune; clone3 with @args, the copy that was checked. */
static void pass_clone(struct dune_tf *tf, const struct clone_args *args, u64 size)
{
	if (args)
		dune_syscall_clone3(tf, args, size);
	else
		dune_syscall_pass(tf);
}

/*
 * A child either has memory of its own, or its parent waits for it: otherwise both
 * would use this runtime's memory at the same time. A child that shares memory
 * cannot share it with a child of its own: its parent waits only until the child
 * is dead, and SIGKILL ends the child's own wait. And a child always has a table
 * of descriptors of its own: no other process may use a descriptor before
 * call_open() has judged it, or change the numbers of hidden ones.
 */
static void make_child(struct dune_tf *tf, u64 flags, const struct clone_args *args,
		       u64 size)
{
	bool shares = flags & CLONE_VM, before = shares_parents_memory;
	struct parent parent;
	u64 rip = tf->rip;

	if (flags & CLONE_THREAD) {
		pass_clone(tf, args, size);	/* libdune refuses it, with a message */
		return;
	}
	if (flags & CLONE_FILES) {
		refuse(tf, -EINVAL);
		return;
	}
	if (shares && (before || !(flags & CLONE_VFORK))) {
		refuse(tf, -ENOSYS);
		return;
	}
	if (shares) {
		long err = before_vfork(&parent);

		if (err) {
			refuse(tf, err);
			return;
		}
	} else {
		stats_before_copy();
	}
	shares_parents_memory = shares;
	pass_clone(tf, args, size);
	if (shares)
		after_vfork(&parent);
	else
		stats_after_copy();
	shares_parents_memory = before;
	if (tf->rip == rip && (long)tf->rax > 0)
		stats_new_process();
}

void call_fork(struct dune_tf *tf)
{
	make_child(tf, tf->rax == __NR_vfork ? CLONE_VM | CLONE_VFORK : 0, NULL, 0);
}

void call_clone(struct dune_tf *tf)
{
	make_child(tf, ARG0(tf), NULL, 0);
}

/* The structure is copied first, so that libdune uses what was checked. */
void call_clone3(struct dune_tf *tf)
{
	struct clone_args args = {};
	u64 size = ARG1(tf);
	long err = user_read_struct(&args, sizeof(args), CLONE_ARGS_SIZE_VER0, ARG0(tf), size);

	if (err) {
		refuse(tf, err);
		return;
	}
	if (in_super_range(args.pidfd) || in_super_range(args.child_tid) ||
	    in_super_range(args.parent_tid) || in_super_range(args.set_tid)) {
		refuse(tf, -EFAULT);
		return;
	}
	make_child(tf, args.flags, &args, size < sizeof(args) ? size : sizeof(args));
}

void call_exit(struct dune_tf *tf)
{
	stats_end_process();
	stats_report();
	dune_syscall_pass(tf);
}

/*
 * The kernel stores a word at this address when the process ends. An address in the
 * supervisor range counts as none.
 */
void call_set_tid_address(struct dune_tf *tf)
{
	u64 where = in_super_range(ARG0(tf)) ? 0 : ARG0(tf);

	dune_syscall_result(tf, dune_syscall_forward(tf->rax, where, 0, 0, 0, 0, 0));
}

/*
 * When the process ends the kernel walks the list and marks words that hold the
 * process's number, at any addresses that the list contains. The memory ends with
 * the process, except when it is the parent's: then the program gets no such list.
 */
void call_set_robust_list(struct dune_tf *tf)
{
	if (shares_parents_memory) {
		refuse(tf, -ENOSYS);
		return;
	}
	dune_syscall_result(tf, forward(tf));
}
