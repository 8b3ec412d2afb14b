// SPDX-License-Identifier: MIT OR Apache-2.0
/* The settings of a process: prctl, arch_prctl. */
#include "calls.h"
#include "super_range.h"

#include <asm/prctl.h>
#include <linux/prctl.h>

/* Options that the uapi headers of Linux 6.1 lack */
#define PR_SET_MDWE		65
#define PR_GET_MDWE		66
#define PR_SET_MEMORY_MERGE	67
#define PR_GET_MEMORY_MERGE	68
#define PR_GET_AUXV		0x41555856

/*
 * The options that are forwarded take and return values, or have a pointer that is checked
 * here. All others give the error of a kernel that does not have them. PR_SET_MM would
 * move the areas that load/areas.c set up; system call user dispatch and seccomp would catch
 * the runtime's own calls; PR_SET_TSC would forbid RDTSC in ring 0 of the guest, too
 * (docs/intercepts.md).
 */
static long check_prctl(const struct dune_tf *tf)
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
		return in_super_range(ARG1(tf)) ? -EFAULT : 0;
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
	case PR_SET_MDWE:
	case PR_GET_MDWE:
	case PR_SET_MEMORY_MERGE:
	case PR_GET_MEMORY_MERGE:
		return 0;
	case PR_SCHED_CORE:
		return in_super_range(ARG4(tf)) ? -EFAULT : 0;
	case PR_GET_AUXV:
		return meets_super_range(ARG1(tf), ARG2(tf)) ? -EFAULT : 0;
	case PR_SET_VMA:
		if (meets_super_range(ARG2(tf), ARG3(tf)))
			return -ENOMEM;
		return in_super_range(ARG4(tf)) ? -EFAULT : 0;
	}
	return -EINVAL;
}

void call_prctl(struct dune_tf *tf)
{
	long err = check_prctl(tf);

	if (err)
		refuse(tf, err);
	else
		dune_syscall_result(tf, forward(tf));
}

/*
 * The guest has FS and GS bases of its own, which libdune sets. CPUID cannot be
 * made to fault, as on a processor without that feature: the rule would hold in both
 * rings of the guest (docs/intercepts.md), and the runtime executes CPUID in ring 0.
 */
void call_arch_prctl(struct dune_tf *tf)
{
	switch ((u32)ARG0(tf)) {
	case ARCH_GET_FS:
	case ARCH_GET_GS:
		if (in_super_range(ARG1(tf))) {
			refuse(tf, -EFAULT);
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
		refuse(tf, -ENODEV);
		return;
	case ARCH_GET_XCOMP_SUPP:
	case ARCH_GET_XCOMP_PERM:
		if (in_super_range(ARG1(tf))) {
			refuse(tf, -EFAULT);
			return;
		}
		dune_syscall_result(tf, forward(tf));
		return;
	}
	refuse(tf, -EINVAL);
}
