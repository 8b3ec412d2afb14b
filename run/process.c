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
 * Children that run in this memory: their parent waits for them (vfork), or
 * nobody knows when they end. A child does not come through here, libdune
 * lets it go on behind its call: all is done by the parent, which is before
 * the child runs in what they share.
 */
static unsigned int borrowers;

/*
 * CLONE_FILES is refused where both go on at once: call_open() relies on
 * nobody else using a descriptor before it was judged.
 */
static void make_child(struct dune_tf *tf, u64 flags, const struct clone_args *args,
		       u64 size)
{
	u64 rip = tf->rip;

	if ((flags & CLONE_FILES) && !(flags & (CLONE_VFORK | CLONE_THREAD))) {
		refuse(tf, EINVAL);
		return;
	}
	if (flags & CLONE_VM)
		borrowers++;
	if (args)
		dune_syscall_clone3(tf, args, size);
	else
		dune_syscall_pass(tf);
	if ((flags & CLONE_VM) && ((flags & CLONE_VFORK) || (long)tf->rax < 0))
		borrowers--;
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

/* The structure is copied first: what was checked is what libdune uses. */
void call_clone3(struct dune_tf *tf)
{
	struct clone_args args = {};
	u64 size = ARG1(tf);

	if (size < CLONE_ARGS_SIZE_VER0 || size > sizeof(args)) {
		refuse(tf, size > sizeof(args) ? E2BIG : EINVAL);
		return;
	}
	if (user_read(&args, ARG0(tf), size) || in_granule(args.pidfd) ||
	    in_granule(args.child_tid) || in_granule(args.parent_tid) ||
	    in_granule(args.set_tid)) {
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

/* The kernel stores there when the process ends. */
void call_set_tid_address(struct dune_tf *tf)
{
	u64 where = in_granule(ARG0(tf)) ? 0 : ARG0(tf);

	dune_syscall_result(tf, dune_syscall_forward(tf->rax, where, 0, 0, 0, 0, 0));
}

/*
 * When the process ends the kernel walks the list and marks words that hold
 * the process's number, wherever the list says they are. The memory ends with
 * the process, except when it is borrowed: then there is no such list.
 */
void call_set_robust_list(struct dune_tf *tf)
{
	if (borrowers) {
		refuse(tf, ENOSYS);
		return;
	}
	dune_syscall_result(tf, forward(tf));
}

/*
 * Options that only set values, or whose second argument is a pointer that
 * was checked here. The others look like those of another architecture or of
 * a kernel without them. PR_SET_MM would move what start.c set up; system
 * call user dispatch and seccomp would catch the calls of the host half; a
 * TSC that faults cannot be given, as the guest's CR4 is fixed.
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
		if (in_granule(ARG1(tf))) {
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
		if (in_granule(ARG4(tf))) {
			refuse(tf, EFAULT);
			return;
		}
		break;
	case 0x41555856:	/* PR_GET_AUXV, since 6.4 */
		if (meets_granule(ARG1(tf), ARG2(tf))) {
			refuse(tf, EFAULT);
			return;
		}
		break;
	case PR_SET_VMA:
		if (meets_granule(ARG2(tf), ARG3(tf))) {
			refuse(tf, ENOMEM);
			return;
		}
		if (in_granule(ARG4(tf))) {
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
 * The bases are the guest's and libdune's affair. CPUID does not exit and so
 * cannot be made to fault: as on a CPU that cannot.
 */
void call_arch_prctl(struct dune_tf *tf)
{
	switch ((u32)ARG0(tf)) {
	case ARCH_GET_FS:
	case ARCH_GET_GS:
		if (in_granule(ARG1(tf))) {
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
		tf->rax = 1;
		return;
	case ARCH_SET_CPUID:
		refuse(tf, ENODEV);
		return;
	case ARCH_GET_XCOMP_SUPP:
	case ARCH_GET_XCOMP_PERM:
		if (in_granule(ARG1(tf))) {
			refuse(tf, EFAULT);
			return;
		}
		dune_syscall_result(tf, forward(tf));
		return;
	}
	refuse(tf, EINVAL);
}

/* As a kernel without it: a filter would judge the host half's calls too. */
void call_seccomp(struct dune_tf *tf)
{
	refuse(tf, ENOSYS);
}
