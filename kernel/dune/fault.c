// SPDX-License-Identifier: GPL-2.0-only
/*
 * Nested page faults. The guest accessed an address of the process in a way that the
 * second level does not allow now. To Linux this is a page fault of the thread like any
 * other. An access that the process may make is resolved here. Everything else (no
 * mapping, a stack to grow, a forbidden access, SIGBUS, no memory) goes to the host half,
 * which accesses the address in user mode: then the kernel itself grows the stack or
 * sends the signal, with the right siginfo. Without a host half (alone.c) the guest gets #PF, and
 * asks for that access.
 */
#include <linux/mm.h>
#include <linux/sched/task_stack.h>
#include <asm/trap_pf.h>

#include "dune/compat.h"
#include "dune/exit.h"
#include "dune/trace/trace.h"
#include "dune/vcpu.h"
#include "dune/vcpu_ops.h"
#include "dune/vm.h"

static bool vma_allows(const struct vm_area_struct *vma, u32 flags)
{
	if (vma->vm_flags & VM_SHADOW_STACK)
		return false;
	if (flags & DUNE_FAULT_WRITE)
		return vma->vm_flags & VM_WRITE;
	if (flags & DUNE_FAULT_EXEC)
		return vma->vm_flags & VM_EXEC;
	return vma->vm_flags & (VM_READ | VM_EXEC | VM_WRITE);
}

/*
 * Calls the kernel's page fault handler as a page fault of the thread would. Returns
 * whether the guest may try again. Takes and releases mmap_lock.
 */
static bool fault_in_process(struct mm_struct *mm, u64 address, u32 flags)
{
	/*
	 * Not FAULT_FLAG_USER: with it a memory cgroup may leave work to the end
	 * of the page fault (pagefault_out_of_memory()). Nothing does that work after a
	 * nested page fault.
	 */
	unsigned int how = FAULT_FLAG_DEFAULT;
	struct vm_area_struct *vma;
	vm_fault_t fault;

	if (flags & DUNE_FAULT_WRITE)
		how |= FAULT_FLAG_WRITE;
	if (flags & DUNE_FAULT_EXEC)
		how |= FAULT_FLAG_INSTRUCTION;
	if (mmap_read_lock_killable(mm))
		return true;	/* a fatal signal: the run loop sees it */
	vma = find_vma(mm, address);
	if (!vma || address < vma->vm_start || !vma_allows(vma, flags)) {
		mmap_read_unlock(mm);
		return false;
	}
	fault = handle_mm_fault(vma, address, how, task_pt_regs(current));
	/* Both mean that the lock has been dropped. */
	if (fault & (VM_FAULT_RETRY | VM_FAULT_COMPLETED))
		return true;
	mmap_read_unlock(mm);
	return !(fault & VM_FAULT_ERROR);
}

/*
 * Makes the second level allow the access to @gpa, which is @address of the process, if the process
 * may make it. Returns whether the guest may try again.
 */
static bool fill_second_level(struct dune_vcpu *vcpu, u64 gpa, u64 address, u32 flags)
{
	bool resolved;
	int err;

	err = second_level_fill_before(&vcpu->second_level, gpa, address, flags);
	if (err != -EFAULT)
		return !err;
	resolved = fault_in_process(vcpu->vm->mm, address, flags);
	return second_level_fill_after(&vcpu->second_level, gpa, address, flags, resolved);
}

/* Raises #PF in the guest if there is no host half. Returns as fault_handle(). */
static int raise_unresolved(struct dune_vcpu *vcpu, u64 address, u32 flags)
{
	u32 error = X86_PF_PROT | DUNE_PF_NESTED;

	if (!vcpu->stub)
		return DUNE_EXIT_FAULT;
	if (flags & DUNE_FAULT_WRITE)
		error |= X86_PF_WRITE;
	if (flags & DUNE_FAULT_EXEC)
		error |= X86_PF_INSTR;
	return vcpu_ops->raise_fault(vcpu, address, error) ? 0 : DUNE_EXIT_FAULT;
}

/**
 * fault_handle() - resolve a nested page fault
 * @vcpu:	of current
 * @gpa:	guest-physical address
 * @flags:	DUNE_FAULT_*
 *
 * Context: process, interrupts on, may sleep.
 * Return: 0 to enter the guest again, or DUNE_EXIT_FAULT.
 */
int fault_handle(struct dune_vcpu *vcpu, u64 gpa, u32 flags)
{
	u64 address = gpa;
	bool resolved;

	vcpu_count(vcpu, DUNE_COUNT_FAULT);
	trace_dune_fault(gpa, flags);
	/*
	 * The same fault again: another thread may have resolved it without a
	 * flush, which Linux does not send when it only adds rights, and this TLB
	 * tag may still hold the narrower entry.
	 */
	if (vcpu->fault_page == (gpa & PAGE_MASK))
		second_level_flush(&vcpu->second_level);
	vcpu->fault_page = gpa & PAGE_MASK;
	if (likely(second_level_address(&vcpu->second_level, gpa, &address))) {
		resolved = fill_second_level(vcpu, gpa, address, flags);
	} else {
		resolved = second_level_fill_private(&vcpu->second_level, gpa, flags);
		flags |= DUNE_FAULT_GUEST;
	}
	if (likely(resolved))
		return 0;
	vcpu->run->fault_address = address;
	vcpu->run->fault_flags = flags;
	return raise_unresolved(vcpu, address, flags);
}
