/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernels in the functions that dune/ needs, in addition to those that virt/
 * has already (virt/compat.h, which also describes how a difference is seen).
 */
#ifndef DUNE_COMPAT_H
#define DUNE_COMPAT_H

#include <linux/bitops.h>
#include <linux/entry-common.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/rcupdate.h>
#include <linux/security.h>
#include <linux/string.h>
#include <asm/cpufeature.h>
#include <asm/processor.h>
/* In 6.1 <asm/debugreg.h> uses per-CPU variables without including what they need. */
#include <asm/debugreg.h>
#include <asm/nospec-branch.h>
#include <asm/page.h>
#include <asm/paravirt.h>
#include <asm/thread_info.h>

#include "virt/compat.h"

/* Since 6.16; before, only KVM's headers have the bit of DR7 that is always set. */
#ifndef DR7_FIXED_1
#define DR7_FIXED_1	0x400
#endif

/* Since 6.3 the flags of a VMA are changed by functions that check locks. */
#ifndef HAVE_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/* Since 6.6; a write fault must not be resolved for a shadow stack. */
#ifndef VM_SHADOW_STACK
#define VM_SHADOW_STACK	VM_NONE
#endif

/* Since 6.13 a reschedule may wait for the next tick. */
#ifndef _TIF_NEED_RESCHED_LAZY
#define _TIF_NEED_RESCHED_LAZY	0
#endif

/* Since 7.0 restartable sequences have a flag of their own. */
#ifndef _TIF_RSEQ
#define _TIF_RSEQ	0
#endif

/*
 * The function that runs the thread's seccomp filters, and the meaning of its result. Since 7.3
 * at the latest it returns whether the call is permitted; before, 0 or -1; until 6.15 it had
 * an argument, which no caller used.
 */
#if defined(HAVE_SECCOMP_PERMIT)
#define SECCOMP_FILTERS			__seccomp_permit_syscall
#define seccomp_permits(filters)	((filters)())
#elif defined(HAVE_SECCOMP_VOID)
#define SECCOMP_FILTERS			__secure_computing
#define seccomp_permits(filters)	(!(filters)())
#else
#define SECCOMP_FILTERS			__secure_computing
#define seccomp_permits(filters)	(!(filters)(NULL))
#endif

/* Whether the thread has used io_uring, for which the kernel may make threads of its process. */
#ifdef CONFIG_IO_URING
#define has_io_uring(task)		((task)->io_uring)
#else
#define has_io_uring(task)		false
#endif

/* Whether the thread has registered restartable sequences. The member is a structure since 6.19. */
#ifndef CONFIG_RSEQ
#define kernel_has_rseq(task)		false
#elif defined(HAVE_RSEQ_DATA)
#define kernel_has_rseq(task)		((task)->rseq.usrptr)
#else
#define kernel_has_rseq(task)		((task)->rseq)
#endif

/*
 * The identifiers by which security modules know the calling thread. Since 6.13 each of them has
 * its own member.
 */
struct lsm_id {
#ifdef HAVE_LSM_PROP
	struct lsm_prop prop;
#else
	u32 secid;
#endif
};

static inline void lsm_current_id(struct lsm_id *id)
{
	memset(id, 0, sizeof(*id));
#ifdef HAVE_LSM_PROP
	security_current_getlsmprop_subj(&id->prop);
#else
	security_current_getsecid_subj(&id->secid);
#endif
}

/*
 * Returns the file that the process of @mm executes, with a reference, or NULL. Since 6.7 a struct
 * file may become another file's within an RCU read section, and get_file_rcu() looks at the
 * pointer again; before, that was a macro.
 */
static inline struct file *kernel_exe_file(struct mm_struct *mm)
{
	struct file *file;

	rcu_read_lock();
#ifdef get_file_rcu
	file = rcu_dereference(mm->exe_file);
	if (file && !get_file_rcu(file))
		file = NULL;
#else
	file = get_file_rcu(&mm->exe_file);
#endif
	rcu_read_unlock();
	return file;
}

/* MM_CONTEXT_HAS_VSYSCALL in mm_context_t.flags; since 6.4 that macro is the number of the bit. */
#define MM_HAS_VSYSCALL		2

/* Since 6.6, 6.11 and 6.18; a newer kernel's own definition is the same. */
#define __NR_map_shadow_stack	453
#define __NR_uretprobe		335
#define __NR_uprobe		336

/* Renamed in 6.9; this is the newer name. */
#ifdef CONFIG_PAGE_TABLE_ISOLATION
#define CONFIG_MITIGATION_PAGE_TABLE_ISOLATION	1
#endif

/* Returns the page table of user mode, which with PTI is not the kernel's. */
static inline pgd_t *kernel_user_page_table(pgd_t *pgd)
{
#ifdef CONFIG_MITIGATION_PAGE_TABLE_ISOLATION
	if (boot_cpu_has(X86_FEATURE_PTI))
		return kernel_to_user_pgdp(pgd);
#endif
	return pgd;
}

/* Since 6.9 interrupts and exceptions can come without an IDT. */
static inline bool kernel_uses_fred(void)
{
#ifdef X86_FEATURE_FRED
	return boot_cpu_has(X86_FEATURE_FRED);
#else
	return false;
#endif
}

/*
 * Since 6.17, and in updates of older kernels (VMSCAPE): asks the kernel for an IBPB, which
 * clears all predictions, before this CPU runs user mode again. Interrupts are off.
 */
static __always_inline void kernel_request_ibpb(void)
{
#ifdef X86_FEATURE_IBPB_EXIT_TO_USER
	if (cpu_feature_enabled(X86_FEATURE_IBPB_EXIT_TO_USER))
		this_cpu_write(x86_ibpb_exit_to_user, true);
#endif
}

/* Since 6.15: TLB shootdown by INVLPGB, without interrupts. */
static inline bool kernel_flushes_by_broadcast(void)
{
#ifdef CONFIG_BROADCAST_TLB_FLUSH
	return boot_cpu_has(X86_FEATURE_INVLPGB);
#else
	return false;
#endif
}

/*
 * Under some hypervisors a TLB shootdown is a hypercall, or waits until the
 * hypervisor runs the other processor again: neither sends an interrupt.
 * @native is the kernel's own function, which does.
 */
static inline bool kernel_flushes_by_hypervisor(unsigned long native)
{
#ifdef CONFIG_PARAVIRT
	return (unsigned long)pv_ops.mmu.flush_tlb_multi != native;
#else
	return false;
#endif
}

/* The callbacks that look for a young page return int in older kernels, and bool in 7.3. */
#define young_t \
	typeof(((struct mmu_notifier_ops *)NULL)->test_young(NULL, NULL, 0))

/* Since 6.6; the older callback was also called at the end of an invalidation. */
#ifndef HAVE_ARCH_INVALIDATE
#define arch_invalidate_secondary_tlbs	invalidate_range
#endif

#endif /* DUNE_COMPAT_H */
