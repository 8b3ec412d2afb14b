// SPDX-License-Identifier: GPL-2.0-only
/*
 * The stub: a page of code through which user mode runs a vCPU (<linux/dune.h> has its
 * contract). It keeps nothing in memory: the kernel decides where the thread continues, and
 * passes everything else in registers.
 *
 * Three things make it fit for a process whose other code is not trusted. The page defends
 * itself: only the end of the process takes it away. A run begins only by the stub's lseek()
 * (stub_enters()), and after it the thread continues at a place of the stub that the module has
 * chosen (stub_go_to()). And the guest cannot make the calls by which the kernel itself would
 * direct the thread somewhere else (closed_list.c).
 *
 * After the stub, the same mapping shows the window of an address space: pages of private memory
 * that the process can read and only guests can write.
 */
#include <linux/anon_inodes.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/ptrace.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

#include "dune/child.h"
#include "dune/compat.h"
#include "dune/stub.h"
#include "dune/vcpu.h"
#include "dune/vm.h"

/* stub_code.S */
extern const u8 stub_code[], stub_code_end[];

/* The one page that all processes map, read-only, filled with INT3 after the code. */
static void *stub_page __ro_after_init;

/* Makes the page. Called once, at load; may sleep. Returns 0 or -ENOMEM. */
int __init stub_init(void)
{
	stub_page = (void *)__get_free_page(GFP_KERNEL);
	if (!stub_page)
		return -ENOMEM;
	memset(stub_page, 0xcc, PAGE_SIZE);
	memcpy(stub_page, stub_code, stub_code_end - stub_code);
	return 0;
}

/* Frees the page, which is mapped nowhere: a mapping has a file of this module. */
void stub_cleanup(void)
{
	free_page((unsigned long)stub_page);
}

static bool uses(const struct task_struct *process, const struct mm_struct *mm)
{
	const struct task_struct *t;

	for_each_thread(process, t) {
		const struct mm_struct *used = READ_ONCE(t->mm);

		if (used)
			return used == mm;
	}
	return false;
}

/*
 * The mapping is copied for a child, which gets the vCPU that the calling thread has made for it,
 * and the window of that vCPU's address space. Without a vCPU it has no window: the entries of the
 * parent's mapping are not copied, since stub_fault() can make them (vma_needs_copy() in Linux).
 * An mremap() of the stub gets here, too.
 */
static void stub_open(struct vm_area_struct *vma)
{
	struct file *child = NULL;
	struct dune_vm *vm = NULL;

	if (vma->vm_mm != current->mm)
		child = child_of_fork(vma->vm_start);
	if (child) {
		vm = vcpu_of(child)->vm;
		vm_get(vm);
		vm->child = child;
	}
	vma->vm_private_data = vm;
}

/*
 * The stub is being unmapped. Code that runs there, or will return there, must not continue with
 * what is mapped in its place. So all processes that share this memory get SIGKILL. The lock of
 * the memory is held, and no mapping can take the place before it is released: a thread that
 * executes the stub then faults. It finds the signal when that fault is handled, and if the lock
 * is held for reading only (munmap()), SIGSEGV may come first.
 *
 * A process that is being made (CLONE_VM) is in the list before its parent can be killed, or is
 * not made, because its parent was (copy_process()). The main thread of a process may have ended
 * before its other threads, so the signal goes to the process and not to that thread. At the end
 * of the memory itself nobody uses it.
 *
 * An mmap() of the stub that fails midway and a fork that fails get here, too, and so does an
 * mremap() that has moved it, before it releases the lock.
 *
 * This looks at all processes, and no signal ends it early. If one munmap() could unmap many stubs,
 * each would cost such a search. So an mm has at most one stub (stub_mmap()).
 */
static void stub_close(struct vm_area_struct *vma)
{
	struct dune_vm *vm = vma->vm_private_data;
	struct mm_struct *mm = vma->vm_mm;
	struct task_struct *p;

	if (vm) {
		struct file *child = xchg(&vm->child, NULL);

		if (child)
			fput(child);
		vm_put(vm);
	}
	if (!atomic_read(&mm->mm_users))
		return;
	rcu_read_lock();
	for_each_process(p)
		if (!(p->flags & PF_KTHREAD) && uses(p, mm))
			kill_pid(task_tgid(p), SIGKILL, 1);
	rcu_read_unlock();
}

/*
 * The mapping is one piece: no part of it can be unmapped, moved or given other properties by
 * itself.
 */
static int stub_may_split(struct vm_area_struct *vma, unsigned long address)
{
	return -EINVAL;
}

static int stub_mprotect(struct vm_area_struct *vma, unsigned long start, unsigned long end,
			 unsigned long flags)
{
	return -EACCES;
}

/*
 * Also called after madvise(MADV_DONTNEED), which takes away entries only. The mapping's reference
 * to the address space keeps the pages of the window.
 */
static vm_fault_t stub_fault(struct vm_fault *vmf)
{
	u64 n = vmf->pgoff - vmf->vma->vm_pgoff;
	const struct dune_vm *vm = vmf->vma->vm_private_data;
	struct page *page = NULL;

	if (!n)
		page = virt_to_page(stub_page);
	else if (vm)
		page = second_level_shown(&vm->second_level, n - 1);
	if (!page)
		return VM_FAULT_SIGBUS;
	get_page(page);
	vmf->page = page;
	return 0;
}

static const struct vm_operations_struct stub_vm_ops = {
	.open = stub_open,
	.close = stub_close,
	.may_split = stub_may_split,
	.mprotect = stub_mprotect,
	.fault = stub_fault,
};

/* A mapping of the stub has a file of its own: a child inherits it, and must not inherit a vCPU. */
static const struct file_operations stub_fops = { .owner = THIS_MODULE };

/* Returns whether @mm has a stub. mmap_lock is held. */
static bool has_stub(struct mm_struct *mm)
{
	VMA_ITERATOR(vmi, mm, 0);
	struct vm_area_struct *vma;

	for_each_vma(vmi, vma)
		if (vma->vm_ops == &stub_vm_ops)
			return true;
	return false;
}

/*
 * Makes @vma the stub, and the window of @vm after it. Without VM_MAYWRITE no access writes there,
 * not even a tracer's (FOLL_FORCE). VM_IO keeps get_user_pages() out, but for its fast variant,
 * which gets a reference to a page and no right to write it. Without VM_PFNMAP a fork copies no
 * entries. A child inherits the mapping. The right to execute is added here because mmap() refuses
 * it for anonymous inodes since 6.16. Returns 0 or a negative errno.
 */
int stub_mmap(struct vm_area_struct *vma, struct dune_vm *vm)
{
	struct file *file;

	if (!(vma->vm_flags & VM_SHARED) || vma->vm_flags & VM_WRITE)
		return -EINVAL;
	if (has_stub(vma->vm_mm))
		return -EBUSY;
	file = anon_inode_getfile("[dune-stub]", &stub_fops, NULL, O_RDONLY);
	if (IS_ERR(file))
		return PTR_ERR(file);
	vma_set_file(vma, file);
	fput(file);
	vm_flags_clear(vma, VM_MAYWRITE);
	vm_flags_set(vma, VM_READ | VM_EXEC | VM_MAYEXEC | VM_IO | VM_DONTEXPAND);
	vma->vm_page_prot = vm_get_page_prot(vma->vm_flags);
	vma->vm_ops = &stub_vm_ops;
	vm_get(vm);
	vma->vm_private_data = vm;
	return 0;
}

/* Returns the mapping of the stub at @address, or NULL. mmap_lock is held. */
static struct vm_area_struct *find_stub(struct mm_struct *mm, unsigned long address)
{
	struct vm_area_struct *vma = vma_lookup(mm, address);

	return vma && vma->vm_start == address && vma->vm_ops == &stub_vm_ops ? vma : NULL;
}

/*
 * Takes the file of the unborn vCPU from the mapping of the stub at @address, if @child is NULL, or
 * puts @child there, if there is none. Returns what the caller then has: NULL if there is no file,
 * @child if it was not put there. May sleep; a fatal signal ends the wait for the lock.
 */
static struct file *exchange_child(unsigned long address, struct file *child)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;
	struct file *old = child;
	struct dune_vm *vm;

	if (mmap_write_lock_killable(mm))
		return child;
	vma = find_stub(mm, address);
	vm = vma ? vma->vm_private_data : NULL;
	if (vm && !(child && vm->child))
		old = xchg(&vm->child, child);
	mmap_write_unlock(mm);
	return old;
}

/*
 * Returns the file of the unborn vCPU that fork has put into the stub at @address, with the
 * reference to it, or NULL. May sleep.
 */
struct file *stub_take_child(unsigned long address)
{
	return exchange_child(address, NULL);
}

/* Puts it back, with the reference. Returns whether it is there again. May sleep. */
bool stub_put_child(unsigned long address, struct file *child)
{
	return !exchange_child(address, child);
}

/*
 * Returns the size of the stub's mapping if the thread is in a system call that a stub has made for
 * a guest, 0 if not, or -EINTR for a fatal signal. May sleep.
 *
 * If the stub is being unmapped, the lock is free again after stub_close(). The process then has a
 * fatal signal, and whatever it executes is not begun.
 */
long stub_size_in_call(void)
{
	unsigned long stub = task_pt_regs(current)->ip - DUNE_STUB_CALL - STUB_CALL_LENGTH;
	struct mm_struct *mm = current->mm;
	const struct vm_area_struct *vma;
	long size;

	if (likely(!PAGE_ALIGNED(stub)) || !mm)
		return 0;
	/* munmap() calls stub_close() when it holds the lock for reading. */
	if (mmap_write_lock_killable(mm))
		return -EINTR;
	vma = find_stub(mm, stub);
	size = vma ? vma->vm_end - vma->vm_start : 0;
	mmap_write_unlock(mm);
	return fatal_signal_pending(current) ? -EINTR : size;
}

/*
 * Checks that @vcpu, of current, can be bound to the stub at @address. May sleep. Returns 0,
 * -EINVAL, -EBUSY or -EINTR.
 */
long stub_can_bind(const struct dune_vcpu *vcpu, unsigned long address)
{
	struct mm_struct *mm = current->mm;
	bool found;

	if (vcpu->running || vcpu->stub)
		return -EBUSY;
	if (mmap_read_lock_killable(mm))
		return -EINTR;
	found = find_stub(mm, address);
	mmap_read_unlock(mm);
	return found ? 0 : -EINVAL;
}
