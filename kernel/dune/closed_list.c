// SPDX-License-Identifier: GPL-2.0-only
/*
 * The closed list: calls that can make the kernel direct the thread, or another one of the
 * process, to an address of the caller's choice in user mode. Any other call ends where it was
 * made, and changes the process's memory at most, in which the stub (stub.c) keeps nothing.
 *
 * hypercall.c refuses these calls to a guest whose vCPU is bound to a stub. Such a guest makes
 * those that it needs as privileged calls, which are not asked about here (alone.c).
 */
#include <linux/bitmap.h>
#include <linux/dune.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/nospec.h>
#include <linux/prctl.h>
#include <linux/ptrace.h>
#include <asm/unistd.h>

#include "dune/closed_list.h"
#include "dune/vcpu.h"

static const u16 closed_list[] = {
	/* They set where a signal handler begins, on which stack, and where it returns to. */
	__NR_rt_sigaction, __NR_sigaltstack, __NR_rt_sigreturn,
	/* It sets where an interrupted sequence of instructions continues. */
	__NR_rseq,
	/* The child continues after the stub's instruction, on a stack of the caller's choice. */
	__NR_clone, __NR_clone3, __NR_fork, __NR_vfork,
	/* Another program would run natively. */
	__NR_execve, __NR_execveat,
	/* It sets the registers of a thread in user mode. */
	__NR_ptrace,
	/* Its requests are calls that pass no list. */
	__NR_io_uring_setup, __NR_io_uring_enter, __NR_io_uring_register,
	/* These are refused with some arguments: closed_list_refuses(). */
	__NR_prctl, __NR_ioctl, __NR_madvise, __NR_process_madvise,
};

/* The numbers of closed_list[]. */
static DECLARE_BITMAP(closed_bitmap, NR_syscalls) __ro_after_init;

/*
 * Adds the numbers of which closed_list_refuses() may refuse calls to @calls, a bitmap of
 * NR_syscalls bits. Called once, at load.
 */
void __init closed_list_add(unsigned long *calls)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(closed_list); i++)
		__set_bit(closed_list[i], closed_bitmap);
	bitmap_or(calls, calls, closed_bitmap, NR_syscalls);
}

/* The bits of an address that the kernel looks at. The others may be a tag (LAM_U57). */
#define UNTAGGED	GENMASK_ULL(56, 0)

/*
 * Returns whether the madvise() in @call could keep the stub of @vcpu from children. Such a child
 * would continue with what is in the stub's place, and a stack above grows into it. The mapping is
 * one piece, so the call must name all of it (stub_may_split()).
 */
static bool keeps_from_children(const struct dune_vcpu *vcpu, const struct pt_regs *call)
{
	return (int)call->dx == MADV_DONTFORK &&
	       ((vcpu->stub - call->di) & UNTAGGED) < PAGE_ALIGN(call->si);
}

/**
 * closed_list_refuses() - whether a guest may make a call
 * @vcpu:	is bound to a stub
 * @call:	its number and arguments, in memory of the kernel
 *
 * hypercall.c asks about the numbers that it has from closed_list_add() and about those that the
 * kernel does not have, and about no others. So a number must be in closed_list[] to be refused.
 *
 * Return: 0, or the negative errno that the guest gets.
 */
long closed_list_refuses(const struct dune_vcpu *vcpu, const struct pt_regs *call)
{
	unsigned long nr = call->orig_ax;

	/* The native entry knows more numbers, those of the x32 ABI. */
	if (nr >= NR_syscalls)
		return -ENOSYS;
	if (!test_bit(array_index_nospec(nr, NR_syscalls), closed_bitmap))
		return 0;
	switch (nr) {
	case __NR_prctl:
		switch ((int)call->di) {
		/* It makes calls signals, except in a range of code of the caller's choice. */
		case PR_SET_SYSCALL_USER_DISPATCH:
		/* It changes which file the process executes (exec.c). */
		case PR_SET_MM:
			return -EPERM;
		}
		return 0;
	case __NR_ioctl:
		/* They set the registers of a guest, and make vCPUs without a stub. */
		return _IOC_TYPE((unsigned int)call->si) == DUNE_IOC_TYPE ? -EPERM : 0;
	case __NR_madvise:
		return keeps_from_children(vcpu, call) ? -EPERM : 0;
	case __NR_process_madvise:
		/* The ranges are in memory that can change, so it is refused for all. */
		return (int)call->r10 == MADV_DONTFORK ? -EPERM : 0;
	default:
		return -EPERM;
	}
}
