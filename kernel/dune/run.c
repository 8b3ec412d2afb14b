// SPDX-License-Identifier: GPL-2.0-only
/*
 * The run loop of DUNE_RUN and of the stub: enter the guest, handle the exit, and enter again,
 * until something needs user mode. The vendors enter the processor and know why the guest was
 * left (vcpu_ops.h); page faults are in fault.c and hypercalls in hypercall.c.
 *
 * Returns are counted here, since a guest may have left kernel addresses in the return
 * stack buffer (x86/return_buffer.h). After an exit, two returns are executed before the
 * run loop makes calls of its own: one from the world switch, one from the function that
 * called it. FILL_TWO_RETURNS gives these two harmless entries. Within the run loop calls
 * and returns are balanced, and before the loop returns, return_buffer_fill()
 * (x86/linux/return_buffer.h) overwrites the whole buffer. The build checks in the finished
 * module that no path has more returns (dune/returns.awk).
 */
#include <linux/entry-common.h>
#include <linux/lockdep.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/vtime.h>
#include <asm/fpu/api.h>
#include <asm/pgtable.h>
#include <asm/pkru.h>

#include "dune/compat.h"
#include "dune/hypercall.h"
#include "dune/trace/trace.h"
#include "dune/vcpu.h"
#include "dune/vcpu_ops.h"
#include "virt/symbol.h"
#include "virt/virt.h"
#include "x86/linux/return_buffer.h"

/* Newer kernels export the function to KVM alone. */
DEFINE_STATIC_CALL_NULL(run_fpu_return, switch_fpu_return);
static bool have_fpu_return __ro_after_init;

/*
 * Looks up the kernel's function that loads the FPU's registers. Called once, at load; may
 * sleep.
 */
void __init run_init(void)
{
	have_fpu_return = symbol_bind(run_fpu_return, "switch_fpu_return");
}

/*
 * Loads the FPU's registers, which are not the thread's now. Interrupts are off. Returns
 * false if only the return to user mode can load them.
 */
static bool run_load_fpu(void)
{
	static_call_cond(run_fpu_return)();
	return have_fpu_return;
}

/*
 * Work for the thread is pending: a signal, a debugger, task work, or a reschedule. A
 * reschedule alone is done here, and 0 is returned: the guest continues. All other work ends
 * the run, since it is done on the way to user mode: returns DUNE_EXIT_INTR.
 */
static int run_pending_work(unsigned long work)
{
	const unsigned long resched = _TIF_NEED_RESCHED | _TIF_NEED_RESCHED_LAZY;

	if (!(work & resched) || work & ~(resched | _TIF_NEED_FPU_LOAD))
		return DUNE_EXIT_INTR;
	schedule();
	return 0;
}

/*
 * Returns a number that differs from an earlier one if the current thread was switched
 * away from since, or if the virtualization of any CPU changed (virt_epoch). Interrupts are
 * off. The terms only grow, also when the thread moves to another CPU, so no two changes
 * cancel out.
 */
static u64 run_epoch(void)
{
	return current->nvcsw + current->nivcsw + atomic64_read(&virt_epoch);
}

/* run_epoch() never returns this. */
#define EPOCH_NONE	U64_MAX

/* The vCPU that was last loaded on this CPU, for comparisons only: it may be gone. */
static DEFINE_PER_CPU(const struct dune_vcpu *, run_loaded);

/* Has run_sched_out() called from now on until the end of the run. */
static void run_notify(struct dune_vcpu *vcpu)
{
	if (vcpu->notified)
		return;
	if (!vcpu_ops->needs_put && !static_branch_unlikely(&virt_kvm_loaded))
		return;
	preempt_notifier_register(&vcpu->notifier);
	vcpu->notified = true;
}

/*
 * The epoch has changed since the last entry, or this is the first entry of a run.
 * Interrupts stay off until after the entry that follows. After a switch of threads, the host's
 * registers that an entry replaces (FS and GS base, TR, system-call MSRs) may have other values:
 * the vendor saves them again, unless they are still saved (@load of struct vcpu_ops). Returns
 * false if run_settle() has to make entry possible first: another CPU still holds something of the
 * vCPU, or virtualization is off here.
 */
static bool run_load(struct dune_vcpu *vcpu)
{
	int cpu = smp_processor_id();
	bool migrated = cpu != vcpu->cpu;

	lockdep_assert_irqs_disabled();
	if (!virt_is_enabled())
		return false;
	if (migrated && vcpu->cpu >= 0 && vcpu_ops->leave_cpu)
		return false;
	if (migrated) {
		vcpu_count(vcpu, DUNE_COUNT_MIGRATION);
		second_level_migrated(&vcpu->second_level);
	}
	vcpu->epoch = run_epoch();
	vcpu->cpu = cpu;
	this_cpu_write(run_loaded, vcpu);
	run_notify(vcpu);
	static_call(vcpu_load)(vcpu, migrated);
	vcpu->resumed = false;
	return true;
}

/*
 * Called after run_load() has returned false; interrupts are on. A CPU without virtualization is
 * going offline, is shutting down, or has refused virtualization after KVM was unloaded
 * or after suspend (virt/cpu.c reported it). The thread may be moved to another CPU, and
 * this CPU may get virtualization again, so the run does not end with an error. It looks
 * again after each tick, and run_loop() first looks for a signal, so a thread that waits
 * here can be interrupted and killed.
 */
static void run_settle(struct dune_vcpu *vcpu)
{
	if (vcpu->cpu >= 0 && vcpu->cpu != raw_smp_processor_id() && vcpu_ops->leave_cpu) {
		vcpu_ops->leave_cpu(vcpu);
		vcpu->cpu = -1;
		return;
	}
	schedule_timeout_uninterruptible(1);
}

/*
 * Time in the guest is user time of the thread, so that CPU limits and interval
 * timers count it: an interrupt that ends the guest must be handled while the thread is
 * still marked (PF_VCPU).
 *
 * Inline, as run_loop() is: returns are counted, see above.
 */
static __always_inline void run_enter(struct dune_vcpu *vcpu)
{
	bool flush = second_level_enter(&vcpu->second_level);
	bool interrupted;

	if (unlikely(flush))
		vcpu_count(vcpu, DUNE_COUNT_TLB_FLUSH);
	trace_dune_entry(vcpu, vcpu->second_level.tlb_gen);
	vtime_account_guest_enter();
	interrupted = static_call(vcpu_enter)(vcpu, flush);
	/*
	 * XRSTOR loads PKRU in every ring, whatever CR4.PKE is (SDM vol. 1, 13.5.7).
	 * The kernel's accesses to user memory obey it. (write_pkru() asks for the
	 * feature, too, but reads its argument first.)
	 */
	if (cpu_feature_enabled(X86_FEATURE_OSPKE))
		write_pkru(vcpu->pkru);
	kernel_request_ibpb();
	if (interrupted) {
		/*
		 * For RCU the thread has been in the kernel, so the tick would
		 * report nothing for it. But a guest is like user mode to RCU;
		 * KVM reports that at each entry (rcu_virt_note_context_switch(),
		 * whose argument differs between kernels).
		 */
		rcu_note_context_switch(false);
		local_irq_enable();
		/* STI takes effect after the instruction that follows it (SDM vol. 2, STI). */
		asm volatile("nop");
		local_irq_disable();
	}
	second_level_leave(&vcpu->second_level);
	vcpu_count(vcpu, DUNE_COUNT_EXITS);
	vtime_account_guest_exit();
	local_irq_enable();
}

/*
 * Before the first entry, work for the return to user mode waits until after one exit:
 * a tracer's stop at the entry of this very ioctl leaves some each time (rseq), and the
 * guest would never get to run.
 *
 * KVM leaves values of its guest in MSRs that only user mode reads (TSC_AUX, on Intel
 * also those of SYSCALL), until some thread returns to user mode on that CPU. The run
 * then ends, so that this thread does.
 */
static __always_inline int run_loop(struct dune_vcpu *vcpu)
{
	const unsigned long all_work = EXIT_TO_USER_MODE_WORK |
				       _TIF_USER_RETURN_NOTIFY | _TIF_NEED_FPU_LOAD;
	unsigned long work = all_work & ~(_TIF_NOTIFY_RESUME | _TIF_RSEQ);
	int reason;

	do {
		unsigned long flags;

		local_irq_disable();
		flags = READ_ONCE(current_thread_info()->flags) & work;
		if (unlikely(flags) && (flags != _TIF_NEED_FPU_LOAD || !run_load_fpu())) {
			local_irq_enable();
			reason = run_pending_work(flags);
			continue;
		}
		if (unlikely(run_epoch() != vcpu->epoch && !run_load(vcpu))) {
			local_irq_enable();
			run_settle(vcpu);
			reason = 0;
			continue;
		}
		/* Nothing may come between: see @load in vcpu_ops.h. */
		run_enter(vcpu);
		work = all_work;
		reason = static_call(vcpu_handle_exit)(vcpu);
	} while (!reason);
	return reason;
}

/* Written out, this takes 28 instructions less for each run than a loop (GCC 12). */
static bool reserved1_is_used(const struct dune_run *run)
{
	const u64 *r = run->reserved1;

	static_assert(ARRAY_SIZE(run->reserved1) == 8);
	return READ_ONCE(r[0]) | READ_ONCE(r[1]) | READ_ONCE(r[2]) |
	       READ_ONCE(r[3]) | READ_ONCE(r[4]) | READ_ONCE(r[5]) |
	       READ_ONCE(r[6]) | READ_ONCE(r[7]);
}

/*
 * RDTSC and CPUID may be forbidden to the thread. Only the thread itself changes that, by
 * calls that end a run, so it is enough to look once for each run.
 */
static void run_forbid(struct dune_vcpu *vcpu)
{
	unsigned long flags = READ_ONCE(current_thread_info()->flags) & (_TIF_NOTSC | _TIF_NOCPUID);

	if (likely(flags == vcpu->forbidden))
		return;
	vcpu->forbidden = flags;
	vcpu_ops->forbid(vcpu, flags & _TIF_NOTSC, flags & _TIF_NOCPUID);
}

/* The thread is switched away from; the run queue is locked, and interrupts are off. */
static void run_sched_out(struct preempt_notifier *notifier, struct task_struct *next)
{
	vcpu_ops->put(container_of(notifier, struct dune_vcpu, notifier));
}

/* The next entry comes through run_load() in any case. */
static void run_sched_in(struct preempt_notifier *notifier, int cpu)
{
}

struct preempt_ops run_preempt_ops = {
	.sched_in = run_sched_in,
	.sched_out = run_sched_out,
};

/*
 * Ends a run: the vendor restores what entries left changed. If the next run resumes this one, its
 * first entry loads the vCPU again.
 */
static void run_put(struct dune_vcpu *vcpu)
{
	local_irq_disable();
	vcpu_ops->put(vcpu);
	local_irq_enable();
	preempt_notifier_unregister(&vcpu->notifier);
	vcpu->notified = false;
	vcpu->epoch = EPOCH_NONE;
}

/*
 * Returns whether a run may resume the last one: the thread has only made the guest's call in
 * between, which is none of listed_bitmap (hypercall.c), as if the call had been dispatched. So
 * what is looked up once for each run need not be looked up again, and the hardware part still has
 * the guest's registers (@put of struct vcpu_ops). If the last run was put, the epoch is
 * EPOCH_NONE, and so the first entry loads the vCPU. Otherwise no other vCPU was loaded on this CPU
 * since, so what @load has saved is still valid, unless run_epoch() has changed. (If the thread
 * comes to another CPU now, it changes.)
 *
 * What may have happened since the last run:
 *  - The thread has come to another CPU. If this vCPU was the last one there, too, in an earlier
 *    stay, the run resumes: the epoch has changed, and run_load() takes back what the other CPU
 *    still holds.
 *  - Virtualization was turned off and on here: hotplug, suspend, hibernation, KVM was loaded or
 *    unloaded. The epoch has changed, and the guest's registers are in memory: a VMCB is there
 *    anyway, and a VMCS was cleared before (@cpu_off of struct vcpu_ops). A kernel that kexec
 *    starts has no runs of this one.
 *  - KVM has run guests here. While KVM is loaded, each run is put.
 *  - A signal has come. Its handler begins another run (DUNE_STUB_FRAME), which does not resume.
 *  - The thread has asked for the state of another vCPU. On Intel this makes that one's VMCS
 *    current; @load of struct vcpu_ops looks which one is.
 *  - An entry has failed, or the run has ended for anything but a call: only leave_for_call() sets
 *    @resumable, and the beginning of each run clears it.
 *  - A new vCPU has the address of the one that was loaded: its first run does not resume.
 *
 * That the thread has made the call is a claim of user mode (EDX in the stub). A false one has one
 * effect on the host's registers, if they need not be saved again: after an exit the thread has the
 * segments, and the bases of FS and GS, that it had when they were last saved.
 */
static bool can_resume(const struct dune_vcpu *vcpu)
{
	return vcpu->resumable && this_cpu_read(run_loaded) == vcpu;
}

/*
 * Checks and sets up what a run needs that does not resume the last one. Returns 0, -EINVAL or
 * -EBUSY.
 */
static __always_inline long run_begin(struct dune_vcpu *vcpu)
{
	struct dune_run *run = vcpu->run;
	u32 flags = READ_ONCE(run->flags);

	if (flags & ~DUNE_RUN_SLOW_SYSCALL || READ_ONCE(run->reserved0) || reserved1_is_used(run))
		return -EINVAL;
	if (vcpu->running)
		return -EBUSY;
	vcpu->slow = flags & DUNE_RUN_SLOW_SYSCALL || !hypercall_is_fast();
	/*
	 * The host half may have changed registers that @load of struct vcpu_ops
	 * saves: the first entry calls it.
	 */
	vcpu->epoch = EPOCH_NONE;
	return 0;
}

/*
 * Runs @vcpu. For the vCPU's thread, in process context; may sleep for as long as the guest runs.
 * Returns the exit reason, -EINVAL or -EBUSY. Callers use this value, since user mode can change
 * dune_run.exit_reason.
 *
 * @resume: the thread has made the call by which the last run ended, and RAX has its result. If
 * nothing else has changed since (can_resume()), the run needs less: the guest's other registers
 * and dune_run.flags are then as the last run left them, whatever another guest has written there.
 *
 * The caller has taken a reference to the vCPU's file, and keeps it for as long as it uses @vcpu.
 * The system call has none if the process has one thread (fdget()): the guest may close its own
 * vCPU by a hypercall, and another process that inherited the descriptor may close the last one.
 */
long run_vcpu(struct dune_vcpu *vcpu, bool resume)
{
	struct dune_run *run = vcpu->run;
	u32 vector = READ_ONCE(run->irq_vector);
	int reason;

	if (vector && (vector < FIRST_EXTERNAL_VECTOR || vector >= NR_VECTORS))
		return -EINVAL;
	resume = resume && can_resume(vcpu);
	if (!resume) {
		long err = run_begin(vcpu);

		if (err)
			return err;
	}
	vcpu->running = true;
	vcpu->resumable = false;
	vcpu->resumed = resume;
	vcpu->irq = vector;
	run->restart = 0;
	vcpu->pkru = read_pkru();
	run_forbid(vcpu);
	if (!resume || vector)
		static_call(vcpu_load_regs)(vcpu);
	reason = run_loop(vcpu);
	if (vcpu->notified)
		run_put(vcpu);
	if (unlikely(vcpu->ioctl_saved))
		hypercall_restore_ioctl(vcpu);
	static_call(vcpu_store_regs)(vcpu);
	run->exit_reason = reason;
	vcpu->running = false;
	return_buffer_fill();
	return reason;
}
