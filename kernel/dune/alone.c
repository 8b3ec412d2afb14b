// SPDX-License-Identifier: GPL-2.0-only
/*
 * A vCPU whose thread has no host half (struct dune_stub in <linux/dune.h>): the stub is all that
 * the thread executes in user mode. Ring 0 of the guest does what a host half would do: the module
 * passes faults (fault.c) and signals to it. It has privileged calls, for which the closed list
 * (closed_list.c) is not asked. Only execve is restricted, to the program that the process executes
 * already (exec.c).
 *
 * A signal's frame is in memory that the program can change. So everything that is taken from it
 * is a value for the guest. What the module itself needs to know, it has in struct dune_vcpu:
 * whether the guest waits for the result of a call, and of which one.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/file.h>
#include <linux/fs.h>
#include <linux/printk.h>
#include <linux/ptrace.h>
#include <linux/ratelimit.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include <asm/fpu/types.h>
#include <asm/pkru.h>
#include <asm/processor.h>
#include <asm/sigframe.h>
#include <asm/unistd.h>

#include "dune/alone.h"
#include "dune/birth.h"
#include "dune/child.h"
#include "dune/compat.h"
#include "dune/hypercall.h"
#include "dune/info.h"
#include "dune/stub.h"
#include "dune/vcpu.h"

/*
 * The place of PKRU in the FPU registers as XSAVE writes them to memory, not compacted, which the
 * processor reports (SDM vol. 1, 13.4.3; APM vol. 2, 11.5.7).
 */
#define CPUID_XSAVE	0xd
static unsigned int pkru_offset __ro_after_init;

/* Called once, at load. */
void __init alone_init(void)
{
	u32 eax, ebx, ecx, edx;

	if (!cpu_feature_enabled(X86_FEATURE_OSPKE))
		return;
	cpuid_count(CPUID_XSAVE, XFEATURE_PKRU, &eax, &ebx, &ecx, &edx);
	pkru_offset = ebx;
}

/**
 * alone_bind() - make the guest do the host half's work
 * @vcpu:	of current, which can be bound to the stub
 * @argument:	of DUNE_SET_STUB
 * @gpa:	returns the guest-physical address of the run page
 *
 * Context: process, may sleep.
 * Return: 0, or a negative errno; then nothing was changed.
 */
long alone_bind(struct dune_vcpu *vcpu, const struct dune_stub *argument, u64 *gpa)
{
	struct private_pages run = { .run_page = virt_to_page(vcpu->run) };
	u32 vector = argument->irq_vector;
	int err;

	if (vector < FIRST_EXTERNAL_VECTOR || vector >= NR_VECTORS)
		return -EINVAL;
	if (!second_level_private_pages())
		return -ENOTTY;
	if (vcpu->mapped)
		return -EBUSY;
	err = second_level_add_private(&vcpu->second_level, &run, gpa);
	if (err)
		return err;
	vcpu->run->regs = argument->regs;
	vcpu->mapped = true;
	vcpu->pkru = read_pkru();
	vcpu->signal_vector = vector;
	return 0;
}

/*
 * Lets the thread continue at @place of the stub. The stub uses no stack. RSP is 0 there, so that
 * each signal's frame begins at the top of the alternate stack.
 */
static void continue_at(const struct dune_vcpu *vcpu, struct pt_regs *regs, unsigned long place)
{
	stub_go_to(vcpu, regs, place);
	regs->sp = 0;
}

/*
 * Ends the process, since its guest cannot continue. The return value is not used. Any user can do
 * this to a process of their own again and again, so the log gets few lines.
 */
static loff_t kill_process(long reason)
{
	static DEFINE_RATELIMIT_STATE(lines, 600 * HZ, 5);

	if (__ratelimit(&lines))
		pr_info("%s[%d] is killed: its guest cannot continue (%ld)\n", current->comm,
			task_pid_nr(current), reason);
	send_sig(SIGKILL, current, 1);
	return -EPERM;
}

/*
 * Sets PKRU to the value that the thread had when its call was interrupted. The call may have
 * changed it (pkey_alloc(), or mprotect() to execute-only memory), so only the frame has the value:
 * among the FPU registers at @fpstate. The program may have changed the frame, but PKRU restricts
 * only accesses to its own memory. Where the frame has none, the last value that the module knows
 * stays.
 */
static void take_pkru(const void __user *fpstate)
{
	const struct xregs_state __user *registers = fpstate;
	u64 features;
	u32 pkru;

	if (!cpu_feature_enabled(X86_FEATURE_OSPKE) ||
	    get_user(features, &registers->header.xfeatures) ||
	    get_user(pkru, (const u32 __user *)(fpstate + pkru_offset)))
		return;
	/* XSAVE may leave out a register that has its initial value, 0. */
	write_pkru(features & XFEATURE_MASK_PKRU ? pkru : 0);
}

/*
 * A signal has come while the guest waits for the call or the probe in @vcpu->frame. @context, of
 * the signal's frame, tells what became of it. A forged frame can only give the call a wrong
 * result, and the thread a PKRU of the program's choice.
 */
static void take_interrupted_call(struct dune_vcpu *vcpu, const struct sigcontext *context)
{
	struct dune_run *run = vcpu->run;

	take_pkru((const void __user *)context->fpstate);
	switch (context->ip - vcpu->stub) {
	case DUNE_STUB_CALL:
	case DUNE_STUB_READ:
	case DUNE_STUB_WRITE:
		WRITE_ONCE(run->regs.rax, context->ax == __NR_restart_syscall ?
					  __NR_restart_syscall : vcpu->frame.orig_ax);
		hypercall_call_again(vcpu);
		break;
	case DUNE_STUB_CALL + STUB_CALL_LENGTH:
	case DUNE_STUB_READ + STUB_READ_LENGTH:
	case DUNE_STUB_WRITE + STUB_WRITE_LENGTH:
		WRITE_ONCE(run->regs.rax, context->ax);
		break;
	default:
		/* Between the call and the next lseek() RSI has the result: stub_code.S. */
		WRITE_ONCE(run->regs.rax, context->si);
		break;
	}
}

/*
 * Passes the signal with the frame of @uc to the guest. @calling: the guest waits for the result of
 * a call. Returns false if the frame cannot be read.
 *
 * The kernel has set PKRU to its initial value for a handler. The value that the thread had is
 * valid again: the kernel's accesses to user memory obey it. Only a call in the stub can have
 * changed it since the last run began: take_pkru().
 */
static noinline bool take_signal(struct dune_vcpu *vcpu, const struct ucontext __user *uc,
				 bool calling)
{
	struct dune_signal *signal = &vcpu->run->signal;
	const struct sigcontext *context;
	struct rt_sigframe frame;

	if (cpu_feature_enabled(X86_FEATURE_OSPKE))
		write_pkru(vcpu->pkru);
	if (copy_from_user(&frame, container_of(uc, struct rt_sigframe, uc), sizeof(frame)))
		return false;
	context = &frame.uc.uc_mcontext;
	static_assert(sizeof(signal->info) == sizeof(frame.info));
	memcpy(signal->info, &frame.info, sizeof(signal->info));
	signal->mask = frame.uc.uc_sigmask.sig[0];
	signal->trap = context->trapno;
	signal->error = context->err;
	signal->cr2 = context->cr2;
	signal->fpstate = (u64)context->fpstate;
	WRITE_ONCE(signal->waiting, 1);
	WRITE_ONCE(vcpu->run->irq_vector, vcpu->signal_vector);
	if (calling)
		take_interrupted_call(vcpu, context);
	return true;
}

/*
 * Takes what the stub passes to lseek(), and runs the vCPU. Returns the exit reason or a negative
 * errno: -EPERM for a thread with a restartable sequence. It has told the kernel an address to
 * continue at whenever it is interrupted in the sequence, and the sequence may be the stub.
 */
static long take_and_run(struct dune_vcpu *vcpu, u64 value, int whence)
{
	bool has_result = whence == DUNE_STUB_RESULT && vcpu->calling;
	bool calling = vcpu->calling;

	vcpu->calling = false;
	if (has_result)
		WRITE_ONCE(vcpu->run->regs.rax, value);
	else if (unlikely(whence == DUNE_STUB_FRAME) &&
		 !take_signal(vcpu, (const void __user *)value, calling))
		return -EFAULT;
	if (unlikely(kernel_has_rseq(current)))
		return -EPERM;
	return run_vcpu(vcpu, has_result);
}

/* Gives the thread the arguments of the guest's call. */
static void load_call(const struct dune_vcpu *vcpu, struct pt_regs *regs)
{
	const struct pt_regs *call = &vcpu->frame;

	regs->di = call->di;
	regs->si = call->si;
	regs->dx = call->dx;
	regs->r10 = call->r10;
	regs->r8 = call->r8;
	regs->r9 = call->r9;
}

/*
 * Lets the thread make the call in @vcpu->frame, or the probe. Returns the thread's RAX.
 *
 * If a signal has interrupted the call in the module already, the thread looks as if the call had
 * been made at DUNE_STUB_CALL. The kernel, on its way to user mode, then lets it fail with EINTR
 * or be made again, as any call (arch_do_signal_or_restart()).
 */
static long make_call(struct dune_vcpu *vcpu, struct pt_regs *regs)
{
	unsigned long nr = vcpu->frame.orig_ax;
	u32 restart;

	vcpu->calling = true;
	load_call(vcpu, regs);
	if (nr == DUNE_PROBE_READ || nr == DUNE_PROBE_WRITE) {
		continue_at(vcpu, regs, nr == DUNE_PROBE_READ ? DUNE_STUB_READ : DUNE_STUB_WRITE);
		return 0;
	}
	restart = READ_ONCE(vcpu->run->restart);
	if (unlikely(restart)) {
		regs->orig_ax = (u32)nr;
		continue_at(vcpu, regs, DUNE_STUB_CALL + STUB_CALL_LENGTH);
		return -(long)restart;
	}
	continue_at(vcpu, regs, DUNE_STUB_CALL);
	return (u32)nr;
}

/* Lets the thread enter the guest again. Returns the thread's RAX. */
static long enter_again(const struct dune_vcpu *vcpu, struct pt_regs *regs)
{
	regs->di = regs->bx;
	regs->dx = 0;
	continue_at(vcpu, regs, DUNE_STUB_ENTER);
	return 0;
}

/* Carries out DUNE_ADD_PAGES. Returns the result. */
static long add_private_pages(struct dune_vcpu *vcpu, u64 count)
{
	struct private_pages pages = { .count = count };
	u64 gpa;
	int err = second_level_add_private(&vcpu->second_level, &pages, &gpa);

	return err ?: (long)gpa;
}

/* Returns whether hypercall @nr is a privileged call, of the number in its lower half. */
static bool is_privileged_call(unsigned long nr)
{
	return nr - DUNE_HOSTCALL < DUNE_HOSTCALL || nr - DUNE_HOSTCALL_NOW < DUNE_HOSTCALL;
}

/*
 * Carries out the hypercall in @vcpu->frame, and returns true. Returns false for a privileged call
 * or a probe, which the stub has to make.
 */
static bool serve(struct dune_vcpu *vcpu, struct pt_regs *regs)
{
	const struct pt_regs *call = &vcpu->frame;

	switch (call->orig_ax) {
	case DUNE_PROBE_READ:
	case DUNE_PROBE_WRITE:
		if (!READ_ONCE(vcpu->run->signal.waiting))
			return false;
		hypercall_call_again(vcpu);
		return true;
	case DUNE_MAKE_CHILD:
	case DUNE_MAKE_SHARED_CHILD:
		child_serve(vcpu);
		return true;
	case DUNE_STUB_MOVE:
		regs->bx = (u32)call->di;
		vcpu->run->regs.rax = 0;
		return true;
	case DUNE_ADD_PAGES:
		vcpu->run->regs.rax = add_private_pages(vcpu, call->di);
		return true;
	case DUNE_FIND_VDSO:
		vcpu->run->regs.rax = (unsigned long)current->mm->context.vdso;
		return true;
	case DUNE_IGNORED_SIGNALS:
		vcpu->run->regs.rax = info_ignored_signals();
		return true;
	default:
		/* The native entry knows more numbers, those of the x32 ABI. */
		if (is_privileged_call(call->orig_ax) && (u32)call->orig_ax < NR_syscalls)
			return false;
		vcpu->run->regs.rax = -ENOSYS;
		return true;
	}
}

/* Runs @vcpu, of current and entered by the stub. Returns the thread's RAX in user mode. */
static long run_and_serve(struct dune_vcpu *vcpu, u64 value, int whence)
{
	struct pt_regs *regs = task_pt_regs(current);
	long reason = take_and_run(vcpu, value, whence);

	switch (reason) {
	case DUNE_EXIT_HOSTCALL:
		if (!serve(vcpu, regs))
			return make_call(vcpu, regs);
		return enter_again(vcpu, regs);
	case DUNE_EXIT_SYSCALL:
		return make_call(vcpu, regs);
	case DUNE_EXIT_INTR:
		return enter_again(vcpu, regs);
	default:
		return kill_process(reason);
	}
}

/**
 * alone_run() - lseek() of a vCPU: run it for the stub
 * @file:	the vCPU's
 * @value:	a result or the address of a frame, by @whence
 * @whence:	DUNE_STUB_RESULT, DUNE_STUB_FRAME, or another number
 *
 * Context: process, in lseek(); may sleep for as long as the guest runs.
 * Return: the thread's RAX in user mode; -EPERM without another RIP if the caller is not the stub.
 */
loff_t alone_run(struct file *file, loff_t value, int whence)
{
	struct dune_vcpu *vcpu = file->private_data;
	loff_t ret = -EPERM;

	/* For run_vcpu(), and for birth_enter(), which takes @file's descriptor away. */
	get_file(file);
	if (unlikely(!vcpu_is_mine(vcpu)))
		ret = birth_enter(file, vcpu);
	else if (stub_enters(vcpu))
		ret = run_and_serve(vcpu, value, whence);
	fput(file);
	return ret;
}
