// SPDX-License-Identifier: GPL-2.0-only
/*
 * Nested page faults. The guest touched an address of the process that the
 * kernel's page table does not allow now; this is a page fault of the thread
 * as any other. What a process may have is had here. Everything else (no
 * mapping, a stack to grow, a forbidden access, SIGBUS, no memory) goes to
 * the host half, which touches the address in user mode: then the kernel
 * itself grows the stack or sends the signal, with the right siginfo.
 */
#include <linux/mm.h>
#include <linux/sched/task_stack.h>

#include "virt/compat.h"
#include "dune/dune.h"
#include "dune/trace.h"

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

/* Returns whether the guest may try again. Takes and releases mmap_lock. */
static bool resolve_fault(struct mm_struct *mm, u64 address, u32 flags)
{
	/*
	 * Not FAULT_FLAG_USER: with it a memory cgroup may leave work to the end
	 * of the page fault (pagefault_out_of_memory()), which is not here.
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
 * Where the second level is a mirror of the page table, that has the page in
 * most cases, and only the mirror has not. Returns as resolve_fault().
 */
static bool resolve_mirrored(const struct dune_vm *vm, u64 address, u32 flags)
{
	int err = mirror_fill(vm->mirror, address, flags, true);

	if (err != -EFAULT)
		return !err;
	if (!resolve_fault(vm->mm, address, flags))
		return false;
	/*
	 * Linux maps a file's pages around the one that is read; a page that
	 * is written first is new, and so are those around it. Taken away again
	 * meanwhile, or a fatal signal: the fault comes again.
	 */
	return mirror_fill(vm->mirror, address, flags,
			   !(flags & DUNE_FAULT_WRITE)) != -ENOMEM;
}

/*
 * Where the second level is the page table itself, but for its top level: that
 * may lack what the kernel has, whoever is to resolve the fault.
 */
static bool resolve_shared(struct dune_vcpu *vcpu, u64 address, u32 flags)
{
	bool resolved = resolve_fault(vcpu->vm->mm, address, flags);

	root_fill(&vcpu->root, address);
	return resolved;
}

/**
 * dune_handle_fault() - resolve a nested page fault
 * @vcpu:	of current
 * @guest:	guest-physical address
 * @flags:	DUNE_FAULT_*
 *
 * Context: process, interrupts on, may sleep.
 * Return: 0 to enter the guest again, or DUNE_EXIT_FAULT.
 */
int dune_handle_fault(struct dune_vcpu *vcpu, u64 guest, u32 flags)
{
	const struct dune_vm *vm = vcpu->vm;
	u64 address = guest;
	bool resolved = false;

	dune_count(vcpu, DUNE_COUNT_FAULT);
	trace_dune_fault(address, flags);
	/*
	 * The same fault again: another thread may have resolved it without
	 * a flush, which Linux does not send when it only adds rights, and
	 * this TLB tag may still hold the narrower entry.
	 */
	if (vcpu->fault_page == (address & PAGE_MASK))
		vcpu->flush = true;
	vcpu->fault_page = address & PAGE_MASK;
	if (vm->mirror && !mirror_address(vm->mirror, guest, &address))
		flags |= DUNE_FAULT_GUEST;
	else if (unlikely(address >= TASK_SIZE_MAX))
		resolved = false;
	else if (vm->mirror)
		resolved = resolve_mirrored(vm, address, flags);
	else
		resolved = resolve_shared(vcpu, address, flags);
	if (likely(resolved))
		return 0;
	vcpu->run->fault_address = address;
	vcpu->run->fault_flags = flags;
	return DUNE_EXIT_FAULT;
}
