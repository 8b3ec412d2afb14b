// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Processes: their making and their end (the work is libdune's), and what a
 * process may set for itself: prctl, arch_prctl, seccomp.
 */
#include "calls.h"

#include <asm/prctl.h>
#include <asm/unistd.h>
#include <linux/prctl.h>
#include <linux/sched.h>

/*
 * This process runs in its parent's memory (vfork), which still exists when it
 * ends. A child does not come through make_child(): libdune lets it continue
 * after its call. So the parent sets this before the child runs, and puts its
 * own value back afterwards.
 */
static bool shares_parents_memory;

/*
 * A parent's robust list. The kernel walks it when the parent dies, and would
 * write to the places that the list names, in memory that the child still runs in.
 */
struct robust {
	u64 head, len;
};

/* Returns 0, or the error for which the list may still be there. */
static long drop_robust_list(struct robust *list)
{
	long err = SYS3(__NR_get_robust_list, 0, &list->head, &list->len);

	if (err || !list->head)
		return err;
	return SYS2(__NR_set_robust_list, 0, list->len);
}

static void restore_robust_list(const struct robust *list)
{
	if (list->head)
		SYS2(__NR_set_robust_list, list->head, list->len);
}

/* dune_syscall_pass(), or clone3 with a structure that was checked */
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
	struct files_table files;
	struct robust robust;
	u64 rip = tf->rip;

	if (flags & CLONE_THREAD) {
		pass_clone(tf, args, size);	/* libdune refuses it, with a message */
		return;
	}
	if (flags & CLONE_FILES) {
		refuse(tf, EINVAL);
		return;
	}
	if (shares && (before || !(flags & CLONE_VFORK))) {
		refuse(tf, ENOSYS);
		return;
	}
	if (shares) {
		long err = drop_robust_list(&robust);

		if (err) {
			refuse(tf, -err);
			return;
		}
		files_save(&files);
	} else {
		stats_before_copy();
	}
	shares_parents_memory = shares;
	pass_clone(tf, args, size);
	if (shares) {
		restore_robust_list(&robust);
		files_restore(&files);
		mem_after_vfork();
	} else {
		stats_after_copy();
	}
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

	if (size < CLONE_ARGS_SIZE_VER0 || size > sizeof(args)) {
		refuse(tf, size > sizeof(args) ? E2BIG : EINVAL);
		return;
	}
	if (user_read(&args, ARG0(tf), size) || in_super_range(args.pidfd) ||
	    in_super_range(args.child_tid) || in_super_range(args.parent_tid) ||
	    in_super_range(args.set_tid)) {
		refuse(tf, EFAULT);
		return;
	}
	make_child(tf, args.flags, &args, size);
}

void call_exit(struct dune_tf *tf)
{
	stats_end_process();
	stats_report();
	dune_syscall_pass(tf);
}

/* The kernel stores a word at this address when the process ends. */
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
		refuse(tf, ENOSYS);
		return;
	}
	dune_syscall_result(tf, forward(tf));
}

/*
 * The options that pass only set values, or have a pointer that is checked here.
 * All others give the error of a kernel that does not have them. PR_SET_MM would
 * move what start.c set up; system call user dispatch and seccomp would catch the
 * calls of the host half; the TSC cannot be made to fault, as the guest's CR4 is
 * fixed.
 */
void call_prctl(struct dune_tf *tf)
{
	switch ((u32)ARG0(tf)) {
	case PR_GET_PDEATHSIG:
	case PR_GET_UNALIGN:
	case PR_GET_FPEXC:
	case PR_SET_NAME:
	case PR_GET_NAME:
	case PR_GET_ENDIAN:
	case PR_GET_TSC:
	case PR_GET_CHILD_SUBREAPER:
	case PR_GET_TID_ADDRESS:
		if (in_super_range(ARG1(tf))) {
			refuse(tf, EFAULT);
			return;
		}
		break;
	case PR_SET_PDEATHSIG:
	case PR_GET_DUMPABLE:
	case PR_SET_DUMPABLE:
	case PR_GET_KEEPCAPS:
	case PR_SET_KEEPCAPS:
	case PR_GET_TIMING:
	case PR_SET_TIMING:
	case PR_CAPBSET_READ:
	case PR_CAPBSET_DROP:
	case PR_GET_SECUREBITS:
	case PR_SET_SECUREBITS:
	case PR_SET_TIMERSLACK:
	case PR_GET_TIMERSLACK:
	case PR_TASK_PERF_EVENTS_DISABLE:
	case PR_TASK_PERF_EVENTS_ENABLE:
	case PR_MCE_KILL:
	case PR_MCE_KILL_GET:
	case PR_SET_PTRACER:
	case PR_SET_CHILD_SUBREAPER:
	case PR_SET_NO_NEW_PRIVS:
	case PR_GET_NO_NEW_PRIVS:
	case PR_SET_THP_DISABLE:
	case PR_GET_THP_DISABLE:
	case PR_CAP_AMBIENT:
	case PR_GET_SPECULATION_CTRL:
	case PR_SET_SPECULATION_CTRL:
	case PR_SET_IO_FLUSHER:
	case PR_GET_IO_FLUSHER:
	case PR_GET_SECCOMP:
	case 65:	/* PR_SET_MDWE, since 6.3 */
	case 66:	/* PR_GET_MDWE */
	case 67:	/* PR_SET_MEMORY_MERGE, since 6.4 */
	case 68:	/* PR_GET_MEMORY_MERGE */
		break;
	case PR_SCHED_CORE:
		if (in_super_range(ARG4(tf))) {
			refuse(tf, EFAULT);
			return;
		}
		break;
	case 0x41555856:	/* PR_GET_AUXV, since 6.4 */
		if (meets_super_range(ARG1(tf), ARG2(tf))) {
			refuse(tf, EFAULT);
			return;
		}
		break;
	case PR_SET_VMA:
		if (meets_super_range(ARG2(tf), ARG3(tf))) {
			refuse(tf, ENOMEM);
			return;
		}
		if (in_super_range(ARG4(tf))) {
			refuse(tf, EFAULT);
			return;
		}
		break;
	default:
		refuse(tf, EINVAL);
		return;
	}
	dune_syscall_result(tf, forward(tf));
}

/*
 * The guest has FS and GS bases of its own, which libdune sets. CPUID cannot be
 * made to fault, as on a processor without that feature: the rule would hold for
 * the runtime, too, which executes CPUID in the same thread. (On AMD CPUID does
 * not exit; on Intel it always does, and the module carries it out.)
 */
void call_arch_prctl(struct dune_tf *tf)
{
	switch ((u32)ARG0(tf)) {
	case ARCH_GET_FS:
	case ARCH_GET_GS:
		if (in_super_range(ARG1(tf))) {
			refuse(tf, EFAULT);
			return;
		}
		dune_syscall_pass(tf);
		return;
	case ARCH_SET_FS:
	case ARCH_SET_GS:
		dune_syscall_pass(tf);
		return;
	case ARCH_GET_CPUID:
		dune_syscall_result(tf, 1);
		return;
	case ARCH_SET_CPUID:
		refuse(tf, ENODEV);
		return;
	case ARCH_GET_XCOMP_SUPP:
	case ARCH_GET_XCOMP_PERM:
		if (in_super_range(ARG1(tf))) {
			refuse(tf, EFAULT);
			return;
		}
		dune_syscall_result(tf, forward(tf));
		return;
	}
	refuse(tf, EINVAL);
}

/* As a kernel without seccomp: a filter would judge the host half's calls, too. */
void call_seccomp(struct dune_tf *tf)
{
	refuse(tf, ENOSYS);
}
