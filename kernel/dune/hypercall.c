// SPDX-License-Identifier: GPL-2.0-only
/*
 * A hypercall is a system call. On the fast path it is dispatched here, in the kernel.
 * On the slow path the host half executes a real SYSCALL instruction. A call
 * takes the slow path while anything watches or restricts the thread (seccomp, ptrace,
 * audit, tracepoints, user dispatch), so that all of these decide exactly as for any
 * process. A call that depends on the frame with which user mode entered the kernel
 * always takes the slow path.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitmap.h>
#include <linux/kvm.h>
#include <linux/mman.h>
#include <linux/nospec.h>
#include <linux/static_call.h>
#include <asm/syscall.h>
#include <asm/unistd.h>

#include "dune/hypercall.h"
#include "dune/trace.h"
#include "dune/vcpu.h"
#include "virt/compat.h"
#include "virt/symbol.h"

/*
 * System calls that take the slow path: always, or, in the last group, with some arguments
 * (is_slow()).
 */
static const u16 slow_calls[] = {
	/* They read, replace or continue the thread's user registers, frame or stack. */
	__NR_clone, __NR_clone3, __NR_fork, __NR_vfork, __NR_execve, __NR_execveat,
	__NR_rt_sigreturn, __NR_sigaltstack, __NR_restart_syscall, __NR_ptrace,
	__NR_uretprobe, __NR_uprobe, __NR_map_shadow_stack,
	/* FS and GS base, descriptor tables, I/O ports. */
	__NR_arch_prctl, __NR_set_thread_area, __NR_get_thread_area,
	__NR_modify_ldt, __NR_iopl, __NR_ioperm,
	/* They end the thread. */
	__NR_exit, __NR_exit_group,
	/* They change what is looked at once for each run: TSC, CPUID, PKRU (run.c). */
	__NR_prctl, __NR_seccomp, __NR_pkey_alloc, __NR_remap_file_pages,
	/* It leaves work for the return to user mode. */
	__NR_rseq,
	/*
	 * reboot() turns virtualization off (virt/cpu.c), and a kernel that kexec loads is
	 * started by it: all three are called without a run below them on the stack.
	 */
	__NR_reboot, __NR_kexec_load, __NR_kexec_file_load,
	/* These are slow only with some arguments: is_slow(). */
	__NR_ioctl, __NR_mmap, __NR_mprotect, __NR_pkey_mprotect,
};

static DECLARE_BITMAP(slow_bitmap, NR_syscalls) __ro_after_init;

/*
 * The dispatcher of do_syscall_64(), which is not exported. The call is patched at load
 * to lead there directly. If the kernel has none, all calls take the slow path.
 */
static long no_dispatcher(const struct pt_regs *regs, unsigned int nr)
{
	return -ENOSYS;
}

DEFINE_STATIC_CALL(dispatcher, no_dispatcher);
static bool have_dispatcher __ro_after_init;

/* Looks up the kernel's dispatcher. Called once, at load. */
void __init hypercall_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(slow_calls); i++)
		if (slow_calls[i] < NR_syscalls)
			__set_bit(slow_calls[i], slow_bitmap);
	have_dispatcher = symbol_bind(dispatcher, "x64_sys_call");
	if (!have_dispatcher)
		pr_info("no system-call dispatcher found: all calls take the slow path\n");
}

/* Returns whether this kernel's system calls can be dispatched in the module. */
bool hypercall_is_fast(void)
{
	return have_dispatcher;
}

/* @nr: below NR_syscalls, also to speculation. */
static bool is_slow(const struct dune_vcpu *vcpu, unsigned long nr)
{
	const struct pt_regs *frame = &vcpu->frame;
	unsigned int type;

	if (vcpu->slow || READ_ONCE(current_thread_info()->syscall_work))
		return true;
	if (likely(!test_bit(nr, slow_bitmap)))
		return false;
	switch (nr) {
	case __NR_ioctl:
		/*
		 * One of Dune's ioctls could put a run on the kernel stack below this
		 * run, and another below that. One of KVM's ioctls could enter a KVM
		 * guest below this run, which takes registers and the shared TLB tag
		 * without a context switch.
		 */
		type = _IOC_TYPE((unsigned int)frame->si);
		return type == DUNE_IOC_TYPE || type == KVMIO;
	case __NR_mmap:
	case __NR_mprotect:
	case __NR_pkey_mprotect:
		/* The kernel makes memory execute-only by a key, which it denies in PKRU. */
		return cpu_feature_enabled(X86_FEATURE_OSPKE) &&
		       (frame->dx & (PROT_READ | PROT_WRITE | PROT_EXEC)) == PROT_EXEC;
	default:
		return true;
	}
}

/*
 * All checks and the handler see only this copy of the arguments, so that a change of
 * the shared page meanwhile has no effect on them. A handler reads nothing else of the
 * frame (calls that do are slow), so nothing else is set: this is the hot path.
 */
static void copy_arguments(struct pt_regs *frame, const struct dune_regs *regs,
			   unsigned long nr)
{
	frame->di = READ_ONCE(regs->rdi);
	frame->si = READ_ONCE(regs->rsi);
	frame->dx = READ_ONCE(regs->rdx);
	frame->r10 = READ_ONCE(regs->r10);
	frame->r8 = READ_ONCE(regs->r8);
	frame->r9 = READ_ONCE(regs->r9);
	frame->orig_ax = nr;
}

static bool is_restart(long ret)
{
	/* One range: of the numbers in between only ENOIOCTLCMD exists, which no call returns. */
	return ret <= -ERESTARTSYS && ret >= -ERESTART_RESTARTBLOCK;
}

/**
 * hypercall_leave() - have the host half carry out the guest's hypercall
 * @vcpu:	of current; dune_run.regs.rax is valid, and RIP is that of the next
 *		instruction
 *
 * Context: process, interrupts on.
 * Return: DUNE_EXIT_SYSCALL or DUNE_EXIT_HOSTCALL.
 */
int hypercall_leave(struct dune_vcpu *vcpu)
{
	unsigned long nr = READ_ONCE(vcpu->run->regs.rax);

	if (nr >= DUNE_HOSTCALL) {
		dune_count(vcpu, DUNE_COUNT_HOSTCALL);
		return DUNE_EXIT_HOSTCALL;
	}
	trace_dune_hypercall(nr);
	dune_count(vcpu, DUNE_COUNT_SYSCALL_SLOW);
	return DUNE_EXIT_SYSCALL;
}

/**
 * hypercall_dispatch() - carry out the guest's hypercall
 * @vcpu:	of current; dune_run.regs.rax is valid, and RIP is that of the next
 *		instruction
 *
 * No interrupt waits for the guest (hypercall_handle()).
 *
 * Context: process, interrupts on, may sleep for as long as a system call.
 * Return: 0 to enter the guest again, DUNE_EXIT_SYSCALL or DUNE_EXIT_HOSTCALL.
 */
notrace int hypercall_dispatch(struct dune_vcpu *vcpu)
{
	struct dune_regs *regs = &vcpu->run->regs;
	unsigned long nr = READ_ONCE(regs->rax);
	long ret;

	copy_arguments(&vcpu->frame, regs, nr);
	if (unlikely(nr >= NR_syscalls))
		return hypercall_leave(vcpu);
	/* This is done before is_slow(), which uses the number as an index, too. */
	nr = array_index_nospec(nr, NR_syscalls);
	if (is_slow(vcpu, nr))
		return hypercall_leave(vcpu);
	trace_dune_hypercall(nr);
	dune_count(vcpu, DUNE_COUNT_SYSCALL_FAST);
	ret = static_call(dispatcher)(&vcpu->frame, nr);
	if (unlikely(is_restart(ret))) {
		vcpu->run->restart = -ret;
		return DUNE_EXIT_SYSCALL;
	}
	regs->rax = ret;
	return 0;
}
