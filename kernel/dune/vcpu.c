// SPDX-License-Identifier: GPL-2.0-only
/*
 * A vCPU: made by a thread, run by that thread, gone with its file. The run
 * loop is here; how the processor is entered and why it left is the vendor's
 * (vendor.h), page faults are in fault.c and hypercalls in syscall.c.
 */
#include <linux/anon_inodes.h>
#include <linux/entry-common.h>
#include <linux/fdtable.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vtime.h>
#include <asm/fpu/api.h>
#include <asm/pgtable.h>

#include "virt/compat.h"
#include "dune/dune.h"
#include "dune/trace.h"
#include "dune/vendor.h"

/* Which newer kernels export to KVM alone. */
DEFINE_STATIC_CALL_NULL(fpu_return, switch_fpu_return);
static bool have_fpu_return __ro_after_init;

void dune_vcpu_init(void)
{
	have_fpu_return = dune_bind(fpu_return, "switch_fpu_return");
}

/*
 * Interrupts off: the FPU's registers are not the thread's. Returns false
 * where only the return to user mode can load them.
 */
static bool vcpu_load_fpu(void)
{
	static_call_cond(fpu_return)();
	return have_fpu_return;
}

/*
 * What a Dune process leaves the guest for, whatever the guest does: a
 * signal, a debugger, task work, a higher-priority thread. Returns 0 when
 * the guest may go on.
 */
static int vcpu_pending_work(unsigned long work)
{
	const unsigned long resched = _TIF_NEED_RESCHED |
				      _TIF_NEED_RESCHED_LAZY;

	if (!(work & resched) || work & ~(resched | _TIF_NEED_FPU_LOAD))
		return DUNE_EXIT_INTR;
	schedule();
	return 0;
}

/*
 * Interrupts off: differs from an earlier value if current was switched away
 * from since, or the state of any CPU changed (dune_host_epoch). The terms only
 * grow, also when the thread moves to another CPU, so no two changes cancel out.
 */
static u64 vcpu_epoch(void)
{
	return current->nvcsw + current->nivcsw +
	       atomic64_read(&dune_host_epoch);
}

/* From now on until the end of the run, vcpu_sched_out() is called. */
static void vcpu_notify(struct dune_vcpu *vcpu)
{
	if (vcpu->notified)
		return;
	if (!vendor->puts_always && !static_branch_unlikely(&dune_beside_kvm))
		return;
	preempt_notifier_register(&vcpu->notifier);
	vcpu->notified = true;
}

/*
 * Interrupts off until after the entry that follows: the epoch has changed
 * since the last entry, or this is the first of a run. The registers that the
 * guest's replace (FS and GS base, TR, system-call MSRs) may have other values
 * now: the vendor saves them again. Returns false where vcpu_settle() has to
 * make entry possible first: another CPU still holds something of the vCPU, or
 * virtualization is off here.
 */
static bool vcpu_moved(struct dune_vcpu *vcpu)
{
	int cpu = smp_processor_id();
	bool migrated = cpu != vcpu->cpu;

	if (!dune_cpu_enabled())
		return false;
	if (migrated && vcpu->cpu >= 0 && vendor->leave_cpu)
		return false;
	if (migrated) {
		dune_count(vcpu, DUNE_COUNT_MIGRATION);
		/*
		 * On SVM it takes a fresh tag. What a mirror leaves in a TLB
		 * is tagged by the mirror's root, and is here from long ago,
		 * or from another mirror whose root was on the same page.
		 */
		vcpu->flush |= !!vcpu->vm->mirror;
	}
	vcpu->epoch = vcpu_epoch();
	vcpu->cpu = cpu;
	vcpu_notify(vcpu);
	static_call(vendor_moved)(vcpu, migrated);
	return true;
}

/*
 * Interrupts on, after vcpu_moved() said no. A CPU without virtualization is
 * one that goes off line, so that the scheduler is about to move us, or that
 * shuts down.
 */
static void vcpu_settle(struct dune_vcpu *vcpu)
{
	if (vcpu->cpu >= 0 && vcpu->cpu != raw_smp_processor_id() &&
	    vendor->leave_cpu) {
		vendor->leave_cpu(vcpu);
		vcpu->cpu = -1;
		return;
	}
	schedule_timeout_uninterruptible(1);
}

/*
 * Interrupts off, right before entry: must the TLB tag be flushed?
 *
 * Where the second level is a mirror of the page table, the mirror counts what
 * it drops, and kicks (mirror.c). Where it is the page table itself: entries of
 * the guest's tag are combined translations, of the guest's page table with the
 * process's. They become stale when the kernel changes the latter. The kernel
 * counts such changes in context.tlb_gen, before it tells the CPUs in
 * mm_cpumask() by IPI, and frees no page before all of them have answered. The
 * tag is a TLB of this mm like any other, so the kernel's own rule
 * (switch_mm_irqs_off()) holds for it:
 *  - a change before the read below is seen in the count: flush;
 *  - a change after it sends an IPI, since this CPU has the mm loaded and is
 *    not lazy. Interrupts are off until the guest runs, and in the guest an
 *    interrupt is an exit. The next entry comes through here again;
 *  - while this thread is off the CPU the tag is not in use.
 * There is no mmu notifier there, so a Dune process pays nothing for a change of
 * its mappings beyond what any process pays; but where the kernel flushes
 * without IPIs, one kicks the vCPUs (shootdown.c).
 */
static bool vcpu_must_flush(struct dune_vcpu *vcpu)
{
	u64 tlb_gen;

	if (static_branch_unlikely(&dune_kicks))
		kick_enter(&vcpu->kick);
	if (static_branch_unlikely(&dune_mirrors))
		tlb_gen = mirror_generation(vcpu->vm->mirror);
	else
		tlb_gen = atomic64_read(&current->mm->context.tlb_gen);
	if (likely(tlb_gen == vcpu->tlb_gen && !vcpu->flush))
		return false;
	vcpu->flush = false;
	vcpu->tlb_gen = tlb_gen;
	if (vcpu->root.table)
		root_refresh(&vcpu->root);
	dune_count(vcpu, DUNE_COUNT_TLB_FLUSH);
	return true;
}

/*
 * Time in the guest is user time of the thread, so that CPU limits and
 * interval timers count it: an interrupt that ends it must be handled while
 * the thread is still marked (PF_VCPU).
 *
 * Inline, as vcpu_loop() is: returns are counted, see return_buffer.h.
 */
static __always_inline void vcpu_enter(struct dune_vcpu *vcpu)
{
	bool flush = vcpu_must_flush(vcpu);
	bool interrupted;

	trace_dune_entry(vcpu);
	vtime_account_guest_enter();
	interrupted = static_call(vendor_enter)(vcpu, flush);
	forget_predictions_before_user_mode();
	if (interrupted) {
		/*
		 * For RCU the thread has been in the kernel, so the tick would
		 * report nothing for it. A guest is to RCU what user mode is;
		 * KVM says so at each entry (rcu_virt_note_context_switch(),
		 * whose argument is not the same in all kernels).
		 */
		rcu_note_context_switch(false);
		local_irq_enable();
		/* STI takes effect behind the instruction that follows it. */
		asm volatile("nop");
		local_irq_disable();
	}
	if (static_branch_unlikely(&dune_kicks))
		kick_leave(&vcpu->kick);
	dune_count(vcpu, DUNE_COUNT_EXITS);
	vtime_account_guest_exit();
	local_irq_enable();
}

/*
 * Before the first entry, work for the return to user mode waits until after
 * one exit: a tracer's stop at the entry of this very ioctl leaves some behind
 * each time (rseq), and the guest would never get to run.
 *
 * KVM leaves values of its guest in MSRs that only user mode sees (TSC_AUX,
 * on Intel also those of SYSCALL), until some thread returns to user mode on
 * that CPU: then so do we.
 */
static __always_inline int vcpu_loop(struct dune_vcpu *vcpu)
{
	const unsigned long all_work = EXIT_TO_USER_MODE_WORK |
				       _TIF_USER_RETURN_NOTIFY |
				       _TIF_NEED_FPU_LOAD;
	unsigned long work = all_work & ~(_TIF_NOTIFY_RESUME | _TIF_RSEQ);
	int reason;

	do {
		unsigned long flags;

		local_irq_disable();
		flags = READ_ONCE(current_thread_info()->flags) & work;
		if (unlikely(flags) &&
		    (flags != _TIF_NEED_FPU_LOAD || !vcpu_load_fpu())) {
			local_irq_enable();
			reason = vcpu_pending_work(flags);
			continue;
		}
		if (unlikely(vcpu_epoch() != vcpu->epoch &&
			     !vcpu_moved(vcpu))) {
			local_irq_enable();
			vcpu_settle(vcpu);
			reason = 0;
			continue;
		}
		/* Nothing in between: see vendor->moved. */
		vcpu_enter(vcpu);
		work = all_work;
		reason = static_call(vendor_handle_exit)(vcpu);
	} while (!reason);
	return reason;
}

static bool reserved1_is_used(const struct dune_run *run)
{
	const u64 *r = run->reserved1;

	static_assert(ARRAY_SIZE(run->reserved1) == 8);
	return READ_ONCE(r[0]) | READ_ONCE(r[1]) | READ_ONCE(r[2]) |
	       READ_ONCE(r[3]) | READ_ONCE(r[4]) | READ_ONCE(r[5]) |
	       READ_ONCE(r[6]) | READ_ONCE(r[7]);
}

/*
 * RDTSC and CPUID may be forbidden to the thread. It changes that itself, by
 * calls that end a run, so once for each is enough.
 */
static void vcpu_filter(struct dune_vcpu *vcpu)
{
	unsigned long flags = READ_ONCE(current_thread_info()->flags) &
			      (_TIF_NOTSC | _TIF_NOCPUID);

	if (likely(flags == vcpu->filter))
		return;
	vcpu->filter = flags;
	vendor->filter(vcpu, flags & _TIF_NOTSC, flags & _TIF_NOCPUID);
}

/* The thread is switched away from; run queue locked, interrupts off. */
static void vcpu_sched_out(struct preempt_notifier *notifier,
			   struct task_struct *next)
{
	vendor->put(container_of(notifier, struct dune_vcpu, notifier));
}

/* The next entry comes through vcpu_moved() in any case. */
static void vcpu_sched_in(struct preempt_notifier *notifier, int cpu)
{
}

static struct preempt_ops vcpu_preempt_ops = {
	.sched_in = vcpu_sched_in,
	.sched_out = vcpu_sched_out,
};

/* The end of a run. */
static void vcpu_put(struct dune_vcpu *vcpu)
{
	local_irq_disable();
	vendor->put(vcpu);
	local_irq_enable();
	preempt_notifier_unregister(&vcpu->notifier);
	vcpu->notified = false;
}

static long vcpu_run(struct dune_vcpu *vcpu)
{
	struct dune_run *run = vcpu->run;
	u32 flags = READ_ONCE(run->flags);
	u32 vector = READ_ONCE(run->irq_vector);
	int reason;

	if (vector && (vector < 32 || vector > 255))
		return -EINVAL;
	if (flags & ~DUNE_RUN_SLOW_SYSCALL || READ_ONCE(run->reserved0) ||
	    reserved1_is_used(run))
		return -EINVAL;
	if (vcpu->running)
		return -EBUSY;
	vcpu->running = true;
	vcpu->irq = vector;
	vcpu->slow = flags & DUNE_RUN_SLOW_SYSCALL || !dune_syscall_is_fast();
	/* The host half may have changed what VMSAVE saves: save it again. */
	vcpu->epoch = -1;
	run->restart = 0;
	vcpu_filter(vcpu);
	static_call(vendor_load)(vcpu);
	reason = vcpu_loop(vcpu);
	if (vcpu->notified)
		vcpu_put(vcpu);
	static_call(vendor_store)(vcpu);
	run->exit_reason = reason;
	vcpu->running = false;
	dune_fill_return_buffer();
	return 0;
}

/*
 * The run takes a reference of its own: a process with one thread enters an
 * ioctl without one, and the guest may close its own vCPU by a hypercall.
 */
static long vcpu_run_file(struct file *file, struct dune_vcpu *vcpu)
{
	long ret;

	get_file(file);
	ret = vcpu_run(vcpu);
	fput(file);
	return ret;
}

static long vcpu_get_state(struct dune_vcpu *vcpu,
			   struct dune_state __user *argument)
{
	struct dune_state state = { .size = sizeof(state) };
	u32 size;

	if (get_user(size, &argument->size))
		return -EFAULT;
	if (size != sizeof(state))
		return -EINVAL;
	vendor->get_state(vcpu, &state);
	state.size = sizeof(state);
	if (copy_to_user(argument, &state, sizeof(state)))
		return -EFAULT;
	return 0;
}

/*
 * VT-x enters no guest without a busy TSS in TR (SDM vol. 3, 27.3.1.2). SVM
 * does, but what follows from it is the same on no two implementations.
 */
static bool is_busy_tss(const struct dune_segment *tr)
{
	return (tr->attributes & 0x9f) == 0x8b;
}

static long vcpu_set_state(struct dune_vcpu *vcpu,
			   const struct dune_state __user *argument)
{
	struct dune_state state;

	if (copy_from_user(&state, argument, sizeof(state)))
		return -EFAULT;
	if (state.size != sizeof(state) || state.cpl > 3 ||
	    memchr_inv(state.reserved, 0, sizeof(state.reserved)) ||
	    !is_busy_tss(&state.tr))
		return -EINVAL;
	if (vcpu->running)
		return -EBUSY;
	vendor->set_state(vcpu, &state);
	vcpu->flush = true;
	return 0;
}

/* Not inline: the structure would give DUNE_RUN a stack to protect. */
static noinline long
vcpu_map_granule(struct dune_vcpu *vcpu,
		 const struct dune_granule __user *argument)
{
	struct dune_granule granule;

	if (!mirror_granules())
		return -ENOTTY;
	if (copy_from_user(&granule, argument, sizeof(granule)))
		return -EFAULT;
	if (granule.size != sizeof(granule) || granule.flags)
		return -EINVAL;
	return mirror_map_granule(vcpu->vm->mirror, granule.guest,
				  granule.address);
}

static int vcpu_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct dune_vcpu *vcpu = file->private_data;
	int err;

	if (current != vcpu->task || current->mm != vcpu->vm->mm)
		return -EPERM;
	if (vma->vm_pgoff || vma->vm_end - vma->vm_start != PAGE_SIZE ||
	    !(vma->vm_flags & VM_SHARED) || (vma->vm_flags & VM_EXEC))
		return -EINVAL;
	if (vcpu->mapped)
		return -EBUSY;
	vm_flags_set(vma, VM_DONTCOPY | VM_DONTEXPAND);
	err = vm_insert_page(vma, vma->vm_start, virt_to_page(vcpu->run));
	vcpu->mapped = !err;
	return err;
}

static void vcpu_free(struct dune_vcpu *vcpu)
{
	root_destroy(&vcpu->root);
	dune_vm_remove_vcpu(vcpu->vm, &vcpu->kick);
	free_page((unsigned long)vcpu->run);
	put_task_struct(vcpu->task);
	dune_vm_put(vcpu->vm);
	kfree(vcpu);
}

static int vcpu_release(struct inode *inode, struct file *file)
{
	struct dune_vcpu *vcpu = file->private_data;

	vendor->destroy(vcpu);
	vcpu_free(vcpu);
	return 0;
}

static const struct file_operations vcpu_fops;

/* An open vCPU of the calling thread, or an ERR_PTR(). */
static struct file *vcpu_open(struct dune_vm *vm, u32 flags)
{
	struct dune_vcpu *vcpu = kzalloc(sizeof(*vcpu), GFP_KERNEL_ACCOUNT);
	struct file *file;
	int err;

	if (!vcpu)
		return ERR_PTR(-ENOMEM);
	err = dune_vm_add_vcpu(vm, &vcpu->kick);
	if (err) {
		kfree(vcpu);
		return ERR_PTR(err);
	}
	dune_vm_get(vm);
	vcpu->vm = vm;
	vcpu->task = get_task_struct(current);
	vcpu->cpu = -1;
	vcpu->smap = flags & DUNE_VCPU_SMAP;
	preempt_notifier_init(&vcpu->notifier, &vcpu_preempt_ops);
	err = -ENOMEM;
	vcpu->run = (void *)get_zeroed_page(GFP_KERNEL_ACCOUNT);
	if (!vcpu->run)
		goto free;
	if (!vm->mirror && root_create(&vcpu->root, vm->mm))
		goto free;
	err = vendor->create(vcpu);
	if (err)
		goto free;
	vendor->set_root(vcpu, vm->mirror ? mirror_eptp(vm->mirror) :
					    root_address(&vcpu->root));
	file = anon_inode_getfile("[dune-vcpu]", &vcpu_fops, vcpu, O_RDWR);
	if (!IS_ERR(file))
		return file;
	err = PTR_ERR(file);
	vendor->destroy(vcpu);
free:
	vcpu_free(vcpu);
	return ERR_PTR(err);
}

/* Returns a file descriptor or a negative errno. */
int dune_vcpu_create(struct dune_vm *vm, u32 flags)
{
	int fd = get_unused_fd_flags(O_CLOEXEC);
	struct file *file;

	if (fd < 0)
		return fd;
	file = vcpu_open(vm, flags);
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	fd_install(fd, file);
	return fd;
}

/*
 * Put @file at number @fd, where @old is: what dup2() does, but @file comes
 * from no other number. Takes over the reference to @file if it succeeds.
 *
 * The ioctl that calls this may have @old without a reference of its own, as
 * may any system call of a process with one thread. The last reference is
 * dropped on the way to user mode at the earliest (fput()), so @old lives until
 * then.
 */
static int replace_file(unsigned int fd, struct file *old, struct file *file)
{
	struct files_struct *files = current->files;
	struct fdtable *fdt;

	spin_lock(&files->file_lock);
	fdt = files_fdtable(files);
	if (fd >= fdt->max_fds ||
	    rcu_access_pointer(fdt->fd[array_index_nospec(fd, fdt->max_fds)]) != old) {
		spin_unlock(&files->file_lock);
		return -EBADF;
	}
	rcu_assign_pointer(fdt->fd[fd], file);
	__set_bit(fd, fdt->close_on_exec);
	spin_unlock(&files->file_lock);
	filp_close(old, files);
	return 0;
}

/* Not inline, as vcpu_map_granule(). */
static noinline long vcpu_renew(struct file *old,
				const struct dune_renew_vcpu __user *argument)
{
	struct dune_renew_vcpu renew;
	struct dune_vm *vm;
	struct file *file;
	int err;

	if (copy_from_user(&renew, argument, sizeof(renew)))
		return -EFAULT;
	if (renew.size != sizeof(renew) || renew.flags & ~DUNE_VCPU_FLAGS ||
	    renew.reserved)
		return -EINVAL;
	vm = dune_vm_new();
	if (IS_ERR(vm))
		return PTR_ERR(vm);
	file = vcpu_open(vm, renew.flags);
	dune_vm_put(vm);
	if (IS_ERR(file))
		return PTR_ERR(file);
	err = replace_file(renew.fd, old, file);
	if (err)
		fput(file);
	return err;
}

static bool vcpu_is_mine(const struct dune_vcpu *vcpu)
{
	return current == vcpu->task && current->mm == vcpu->vm->mm;
}

static long vcpu_ioctl(struct file *file, unsigned int request,
		       unsigned long argument)
{
	struct dune_vcpu *vcpu = file->private_data;
	bool renew = request == DUNE_RENEW_VCPU;

	if (request == DUNE_GET_INFO)
		return dune_get_info((void __user *)argument);
	if (vcpu_is_mine(vcpu) == renew)
		return -EPERM;
	switch (request) {
	case DUNE_RUN:
		return argument ? -EINVAL : vcpu_run_file(file, vcpu);
	case DUNE_GET_STATE:
		return vcpu_get_state(vcpu, (void __user *)argument);
	case DUNE_SET_STATE:
		return vcpu_set_state(vcpu, (void __user *)argument);
	case DUNE_MAP_GRANULE:
		return vcpu_map_granule(vcpu, (void __user *)argument);
	case DUNE_RENEW_VCPU:
		return vcpu_renew(file, (void __user *)argument);
	default:
		return -ENOTTY;
	}
}

static const struct file_operations vcpu_fops = {
	.owner = THIS_MODULE,
	.release = vcpu_release,
	.unlocked_ioctl = vcpu_ioctl,
	.mmap = vcpu_mmap,
	.llseek = noop_llseek,
};
