// SPDX-License-Identifier: GPL-2.0-only
/*
 * A hypercall is a system call, or has a number from DUNE_HOSTCALL on, which ends the run.
 *
 * A system call is dispatched here, in the kernel, on the fast path, after the thread's seccomp
 * filters, if there are any, have permitted it. On the slow path the run ends, and a real SYSCALL
 * instruction is executed in user mode: by the host half, or by the stub if the vCPU is bound to
 * one (stub.c). A call takes the slow path while anything else watches or restricts the thread
 * (ptrace, audit, tracepoints, user dispatch), so that all of these decide exactly as for any
 * process. A call that depends on the frame with which user mode entered the kernel always takes
 * the slow path. So does a call that a stub refuses, which has an error there and is not made.
 *
 * A number from DUNE_HOSTCALL on is a message to the host half. A vCPU that is bound to the stub
 * has none, and there it is a request (alone.c): the stub makes a privileged call, which may be one
 * that the guest is refused otherwise, or probes an address; or the module itself makes a child's
 * vCPU, adds private memory, or has the stub use another descriptor. A request that does not exist
 * has the result -ENOSYS. What the host half decides about an interrupted call, the guest then
 * decides itself.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitmap.h>
#include <linux/kvm.h>
#include <linux/mman.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>
#include <linux/seccomp.h>
#include <linux/static_call.h>
#include <asm/syscall.h>
#include <asm/unistd.h>

#include "dune/closed_list.h"
#include "dune/compat.h"
#include "dune/hypercall.h"
#include "dune/trace/trace.h"
#include "dune/vcpu.h"
#include "virt/symbol.h"

/*
 * System calls that take the slow path: always, or, in the last two groups, if is_slow_now()
 * returns true.
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
	/* These are slow only with some arguments: is_slow_now(). */
	__NR_ioctl, __NR_mmap, __NR_mprotect, __NR_pkey_mprotect,
	/* It is never slow, but needs dispatch_listed(). */
	__NR_lseek,
};

/* The numbers of slow_calls[]. */
static DECLARE_BITMAP(slow_bitmap, NR_syscalls) __ro_after_init;

/* These, and the numbers of which closed_list_refuses() may refuse calls. */
static DECLARE_BITMAP(listed_bitmap, NR_syscalls) __ro_after_init;

/*
 * The dispatcher of do_syscall_64(), which is not exported. The call is patched at load
 * to lead there directly. If the kernel has none, all calls take the slow path.
 */
static long no_dispatcher(const struct pt_regs *regs, unsigned int nr)
{
	return -ENOSYS;
}

DEFINE_STATIC_CALL(hypercall_dispatcher, no_dispatcher);
static bool have_dispatcher __ro_after_init;

/* Runs the thread's seccomp filters on the call in task_pt_regs(). It is not exported. */
DEFINE_STATIC_CALL_NULL(hypercall_filters, SECCOMP_FILTERS);
static bool have_filters __ro_after_init;

/*
 * Fills in the bitmaps, and looks up the kernel's functions. Called once, at load; may
 * sleep.
 */
void __init hypercall_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(slow_calls); i++)
		if (slow_calls[i] < NR_syscalls)
			__set_bit(slow_calls[i], slow_bitmap);
	bitmap_copy(listed_bitmap, slow_bitmap, NR_syscalls);
	closed_list_add(listed_bitmap);
	have_dispatcher = symbol_bind(hypercall_dispatcher, "x64_sys_call");
	if (!have_dispatcher)
		pr_info("no system-call dispatcher found: all calls take the slow path\n");
	have_filters = symbol_bind(hypercall_filters, __stringify(SECCOMP_FILTERS));
}

/* Returns whether this kernel's system calls can be dispatched in the module. For any context. */
bool hypercall_is_fast(void)
{
	return have_dispatcher;
}

/*
 * Returns whether a call of listed_bitmap, in @frame, takes the slow path now. A call that
 * closed_list_refuses() must, since leave_for_call() is the place where it is refused.
 */
static bool is_slow_now(const struct dune_vcpu *vcpu, const struct pt_regs *frame,
			unsigned long nr)
{
	unsigned int type;

	if (vcpu->stub && closed_list_refuses(vcpu, frame))
		return true;
	if (!test_bit(nr, slow_bitmap))
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
	case __NR_lseek:
		return false;
	default:
		return true;
	}
}

/* Returns whether the call of number @nr in @vcpu->frame takes the slow path now. */
static __always_inline bool is_slow(const struct dune_vcpu *vcpu, unsigned long nr)
{
	return unlikely(test_bit(nr, listed_bitmap)) && is_slow_now(vcpu, &vcpu->frame, nr);
}

/*
 * Carries out the call of listed_bitmap in @frame, of number @nr, which is not slow. Returns its
 * result.
 *
 * An lseek() of a vCPU would put a run on the kernel stack below this one. It begins a run only if
 * the thread's RIP is in the stub (alone_run()), and a run that the stub began has that RIP. So
 * RIP is another one meanwhile.
 */
static noinline long dispatch_listed(const struct pt_regs *frame, unsigned long nr)
{
	struct pt_regs *regs = task_pt_regs(current);
	unsigned long ip = regs->ip;
	long ret;

	if (nr == __NR_lseek)
		regs->ip = 0;
	ret = static_call(hypercall_dispatcher)(frame, nr);
	regs->ip = ip;
	return ret;
}

/*
 * All checks and the handler see only this copy of the arguments, so that a change of
 * the shared page meanwhile has no effect on them. A handler reads nothing else of the
 * frame (calls that do are slow), so nothing else is set: this is the hot path. With a call of
 * set_call() it would have two instructions more (GCC 12).
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

/*
 * Returns whether a call that has returned @ret was interrupted by a signal. The kernel looks for
 * these numbers only while a signal is pending (arch_do_signal_or_restart()). Without one they
 * are results like any other: a seccomp filter may choose them (SECCOMP_RET_ERRNO). Inlined for
 * the hot path, which compares with the range only: a call would cost each hypercall 14
 * instructions (GCC 12).
 */
static __always_inline bool is_restart(long ret)
{
	return unlikely(ret <= -ERESTARTSYS && ret >= -ERESTART_RESTARTBLOCK) &&
	       ret != -ENOIOCTLCMD && signal_pending(current);
}

/*
 * Has the host half, or the stub, make the call in @vcpu->frame, after trace_dune_hypercall(). On a
 * vCPU that is bound to a stub, a call that closed_list_refuses() has its error as its result.
 * Returns an exit reason, or 0 to enter the guest again.
 */
static int leave_for_call(struct dune_vcpu *vcpu)
{
	unsigned long nr = vcpu->frame.orig_ax;
	bool listed = nr >= NR_syscalls ||
		      test_bit(array_index_nospec(nr, NR_syscalls), listed_bitmap);
	long err = listed && vcpu->stub ? closed_list_refuses(vcpu, &vcpu->frame) : 0;

	if (unlikely(err)) {
		vcpu->run->regs.rax = err;
		return 0;
	}
	vcpu->resumable = !listed;
	vcpu_count(vcpu, DUNE_COUNT_SYSCALL_SLOW);
	return DUNE_EXIT_SYSCALL;
}

/* Returns whether hypercall @nr is a system call that waits for the guest to take its interrupt. */
static bool waits_for_guest(unsigned long nr)
{
	return nr < DUNE_PROBE_READ;
}

/*
 * Has the host half, or the stub, carry out the hypercall in @vcpu->frame. Returns as
 * hypercall_leave().
 */
static int leave(struct dune_vcpu *vcpu)
{
	unsigned long nr = vcpu->frame.orig_ax;

	if (nr >= DUNE_HOSTCALL) {
		vcpu_count(vcpu, DUNE_COUNT_HOSTCALL);
		return DUNE_EXIT_HOSTCALL;
	}
	trace_dune_hypercall(nr);
	return leave_for_call(vcpu);
}

/**
 * hypercall_leave() - do not carry out the guest's hypercall here, since its interrupt waits
 * @vcpu:	of current; dune_run.regs.rax is valid, and RIP is that of the next
 *		instruction
 *
 * The host half carries it out instead. Without a host half the guest itself decides about it,
 * after its interrupt.
 *
 * Context: process, interrupts on.
 * Return: DUNE_EXIT_SYSCALL or DUNE_EXIT_HOSTCALL; 0 to enter the guest again, if the call was
 * refused or the guest decides.
 */
int hypercall_leave(struct dune_vcpu *vcpu)
{
	const struct dune_regs *regs = &vcpu->run->regs;

	copy_arguments(&vcpu->frame, regs, READ_ONCE(regs->rax));
	if (vcpu->stub && waits_for_guest(vcpu->frame.orig_ax)) {
		hypercall_call_again(vcpu);
		return 0;
	}
	return leave(vcpu);
}

/*
 * Returns whether seccomp filters, and nothing else, decide about the thread's calls.
 *
 * A filter may end the thread if it is not the last one of its process (KILL_THREAD), and the
 * strict mode ends it in any case. The thread would then end within its run, and the run's
 * reference to the vCPU's file would stay. Both take the slow path. The number of live threads
 * must not grow while the filters run. This thread is alone, so only it could start another. It
 * makes no call meanwhile, but in the stop for a tracer (SECCOMP_RET_TRACE) it does its task work,
 * and that of io_uring makes threads. So threads that use io_uring take the slow path, too.
 */
static bool only_seccomp(void)
{
	return READ_ONCE(current_thread_info()->syscall_work) == SYSCALL_WORK_SECCOMP &&
	       seccomp_mode(&current->seccomp) == SECCOMP_MODE_FILTER &&
	       !READ_ONCE(current->ptrace) && !has_io_uring(current) &&
	       atomic_read(&current->signal->live) == 1;
}

/* Returns the parts of a call that a handler and a filter read: its arguments and its number. */
static __always_inline struct call_registers get_call(const struct pt_regs *regs)
{
	return (struct call_registers) {
		.di = regs->di, .si = regs->si, .dx = regs->dx,
		.r10 = regs->r10, .r8 = regs->r8, .r9 = regs->r9,
		.orig_ax = regs->orig_ax,
	};
}

/* Sets these parts of @regs, and no others. */
static __always_inline void set_call(struct pt_regs *regs, struct call_registers call)
{
	regs->di = call.di;
	regs->si = call.si;
	regs->dx = call.dx;
	regs->r10 = call.r10;
	regs->r8 = call.r8;
	regs->r9 = call.r9;
	regs->orig_ax = call.orig_ax;
}

/*
 * Puts the registers of the ioctl or lseek() back, which call_filtered() has replaced during the
 * run. Called by the vCPU's thread if @vcpu->ioctl_saved.
 */
void hypercall_restore_ioctl(struct dune_vcpu *vcpu)
{
	set_call(task_pt_regs(current), vcpu->ioctl);
	vcpu->ioctl_saved = false;
}

/*
 * Carries out the call in @vcpu->frame for a thread with seccomp filters. Stores the result at
 * @ret. Returns false if the host half or the stub has to make the call.
 *
 * The filters read the registers with which the thread has entered the kernel. These are the
 * registers of DUNE_RUN's ioctl, or of the stub's lseek(). The first call saves them, and calls
 * take their place until the run ends (hypercall_restore_ioctl()). A filter that checks the
 * instruction pointer sees that of the ioctl or lseek(). RAX is -ENOSYS from the thread's entry on,
 * until its result replaces it.
 *
 * A filter may ask a tracer (SECCOMP_RET_TRACE) that came after only_seccomp(). The tracer may
 * change the call, and may be gone again afterwards. The kernel's function has then run the
 * filters on the changed call, and as in Linux that call is made, not the old one. So its number
 * and its arguments are checked here as those of the old call were before. If the changed call
 * cannot be made here, or the tracer is still there, the host half or the stub makes the old call
 * anew: the filters run again, and a tracer sees the call as any other.
 */
static bool call_filtered(struct dune_vcpu *vcpu, long *ret)
{
	struct pt_regs *regs = task_pt_regs(current);
	unsigned long nr;

	if (!vcpu->ioctl_saved) {
		vcpu->ioctl = get_call(regs);
		vcpu->ioctl_saved = true;
	}
	set_call(regs, get_call(&vcpu->frame));
	if (unlikely(!seccomp_permits(static_call(hypercall_filters)))) {
		*ret = regs->ax;
		regs->ax = -ENOSYS;
		return true;
	}
	nr = regs->orig_ax;
	if (unlikely(nr >= NR_syscalls || READ_ONCE(current->ptrace)))
		return false;
	nr = array_index_nospec(nr, NR_syscalls);
	if (unlikely(test_bit(nr, listed_bitmap))) {
		if (is_slow_now(vcpu, regs, nr))
			return false;
		*ret = dispatch_listed(regs, nr);
		return true;
	}
	*ret = static_call(hypercall_dispatcher)(regs, nr);
	return true;
}

/* Returns the exit reason of a call that has returned @ret, or 0 to enter the guest again. */
static __always_inline int call_done(struct dune_run *run, long ret)
{
	if (is_restart(ret)) {
		run->restart = -ret;
		return DUNE_EXIT_SYSCALL;
	}
	run->regs.rax = ret;
	return 0;
}

/* Does what hypercall_dispatch() does for a thread that is watched. */
static noinline int dispatch_watched(struct dune_vcpu *vcpu, unsigned long nr)
{
	long ret;

	if (!have_filters || !only_seccomp() || is_slow(vcpu, nr))
		return leave(vcpu);
	/* Before the filters: a call that they refuse is a hypercall, too. */
	trace_dune_hypercall(nr);
	if (!call_filtered(vcpu, &ret))
		return leave_for_call(vcpu);
	vcpu_count(vcpu, DUNE_COUNT_SYSCALL_FAST);
	return call_done(vcpu->run, ret);
}

/* Does what hypercall_dispatch() does for a call of listed_bitmap, off the hot path. */
static noinline int call_listed(struct dune_vcpu *vcpu, unsigned long nr)
{
	if (is_slow_now(vcpu, &vcpu->frame, nr))
		return leave(vcpu);
	trace_dune_hypercall(nr);
	vcpu_count(vcpu, DUNE_COUNT_SYSCALL_FAST);
	return call_done(vcpu->run, dispatch_listed(&vcpu->frame, nr));
}

/**
 * hypercall_dispatch() - carry out the guest's hypercall
 * @vcpu:	of current; dune_run.regs.rax is valid, and RIP is that of the next
 *		instruction
 *
 * No interrupt waits for the guest (hypercall_handle()).
 *
 * Context: process, interrupts on, may sleep for as long as a system call.
 * Return: as hypercall_leave(), or 0 to enter the guest again after the call.
 */
notrace int hypercall_dispatch(struct dune_vcpu *vcpu)
{
	struct dune_run *run = vcpu->run;
	unsigned long nr = READ_ONCE(run->regs.rax);

	copy_arguments(&vcpu->frame, &run->regs, nr);
	if (unlikely(nr >= NR_syscalls))
		return leave(vcpu);
	/* This is done before listed_bitmap is tested, in which the number is an index, too. */
	nr = array_index_nospec(nr, NR_syscalls);
	if (unlikely(vcpu->slow))
		return leave(vcpu);
	if (unlikely(READ_ONCE(current_thread_info()->syscall_work)))
		return dispatch_watched(vcpu, nr);
	if (unlikely(test_bit(nr, listed_bitmap)))
		return call_listed(vcpu, nr);
	trace_dune_hypercall(nr);
	vcpu_count(vcpu, DUNE_COUNT_SYSCALL_FAST);
	return call_done(run, static_call(hypercall_dispatcher)(&vcpu->frame, nr));
}
