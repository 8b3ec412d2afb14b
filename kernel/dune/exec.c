// SPDX-License-Identifier: GPL-2.0-only
/*
 * execve() by a guest without a host half (alone.c). A thread that executes nothing but the stub in
 * user mode must not begin to execute another program there. So the module is a binary format that
 * the kernel asks before its own ones: it sees the file that is really executed, whatever was done
 * to the name, to the descriptor or to an interpreter until then.
 *
 * If the process has a template, nothing of that file is used. A template is a copy of the first
 * vCPU of the process tree, made when that vCPU was bound. A copy of the template begins in the new
 * memory, in which nothing runs natively but the stub.
 */
#include <linux/binfmts.h>
#include <linux/cred.h>
#include <linux/dune.h>
#include <linux/elf.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/personality.h>
#include <linux/ptrace.h>
#include <linux/random.h>
#include <linux/securebits.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/string.h>
#include <asm/pkru.h>

#include "dune/birth.h"
#include "dune/child.h"
#include "dune/compat.h"
#include "dune/exec.h"
#include "dune/stub.h"
#include "dune/vcpu.h"
#include "dune/vm.h"

/*
 * How far below the strings on the stack the stub is mapped. Later mappings then come below the
 * stub: without randomization they begin 128 MB or more below the top of the stack (mmap_base()),
 * and the strings seldom need 2 MB; with it they nearly always begin far lower.
 */
#define STACK_ROOM	(126UL << 20)

/* What the kernel keeps free below a stack (stack_guard_gap, which the command line can change). */
#define STACK_GAP	SZ_1M

/* Returns whether @file is the one that the process executes. */
static bool is_own_program(const struct file *file)
{
	struct file *own = kernel_exe_file(current->mm);
	bool is_own = own && file_inode(own) == file_inode(file);

	if (own)
		fput(own);
	return is_own;
}

static unsigned long stack_top(void)
{
	unsigned long top = STACK_TOP;

	if (current->flags & PF_RANDOMIZE)
		top -= (get_random_long() & STACK_RND_MASK) << PAGE_SHIFT;
	return top;
}

/*
 * Gives the new memory what does not depend on the file, as the kernel's own format for ELF does,
 * and gives up the locks that begin_new_exec() has taken, also if it fails.
 * @old: the task's flags, and @binfmt, its format, both from before begin_new_exec(). @binfmt makes
 * core dumps.
 */
static int make_memory(struct linux_binprm *bprm, unsigned long old, struct linux_binfmt *binfmt)
{
	current->personality &= ~READ_IMPLIES_EXEC;
	if (!(current->personality & ADDR_NO_RANDOMIZE))
		current->flags |= old & PF_RANDOMIZE;
	current->mm->context.flags = MM_HAS_VSYSCALL;
	setup_new_exec(bprm);
	set_binfmt(binfmt);
	return setup_arg_pages(bprm, stack_top(), EXSTACK_DISABLE_X);
}

/*
 * Makes @file's vCPU that of the thread. On Intel a pending signal, also work for the thread or a
 * request to freeze, interrupts this (mm_take_all_locks()). The thread does that work later.
 */
static int attach(struct file *file)
{
	bool signal = false, work = false;
	int err;

	do {
		signal |= test_and_clear_thread_flag(TIF_SIGPENDING);
		work |= test_and_clear_thread_flag(TIF_NOTIFY_SIGNAL);
		err = birth_finish(vcpu_of(file));
	} while (err == -ERESTARTNOINTR && !fatal_signal_pending(current));
	if (signal)
		set_thread_flag(TIF_SIGPENDING);
	if (work)
		set_thread_flag(TIF_NOTIFY_SIGNAL);
	return err;
}

/*
 * Maps the stub of @file's vCPU, @stub bytes with the window, and memory of the process after it:
 * @size bytes in all. If the stack can then still grow to its limit, the mapping is STACK_ROOM
 * below the strings, where the new memory is empty. Otherwise the kernel chooses an address, below
 * all that it leaves for the stack (mmap_base()). Returns the address or a negative errno.
 */
static long map_stub(struct linux_binprm *bprm, struct file *file, unsigned long stub,
		     unsigned long size)
{
	unsigned long at = 0, room = STACK_ROOM - STACK_GAP;

	if (size <= room && bprm->rlim_stack.rlim_cur <= room - size)
		at = (bprm->p & PAGE_MASK) - STACK_ROOM;
	at = vm_mmap(NULL, at, size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, 0);
	if (IS_ERR_VALUE(at))
		return at;
	return vm_mmap(file, at, stub, PROT_READ, MAP_SHARED | MAP_FIXED, DUNE_STUB_OFFSET);
}

/* Sets the registers with which the thread enters the guest at the stub, and those of the guest. */
static void set_registers(struct linux_binprm *bprm, struct dune_vcpu *vcpu, unsigned int fd)
{
	struct dune_regs *guest = &vcpu->run->regs;
	struct pt_regs *regs = task_pt_regs(current);

	guest->rdi = vcpu->stub;
	guest->rsi = bprm->p;
	guest->rdx = bprm->argc | (u64)bprm->envc << 32;
	guest->rcx = bprm->exec;
	guest->r8 = bprm->secureexec;
	guest->r9 = fd;
	ELF_PLAT_INIT(regs, 0);
	start_thread(regs, vcpu->stub + DUNE_STUB_ENTER, 0);
	regs->bx = fd;
	regs->di = fd;
}

/* The identity of the thread, for the kernel and for security modules. */
struct subject {
	const struct cred *cred;
	struct lsm_id id;
};

/*
 * Returns whether the file has given the thread rights that a plain file would not have given to
 * @old. A template must not have them, since it is not the file: a process can choose which file it
 * is said to execute (PR_SET_MM_MAP needs no privilege in a user namespace of one's own).
 */
static bool has_gained(const struct subject *old)
{
	const struct cred *was = old->cred, *cred = current_cred();
	kuid_t root = make_kuid(was->user_ns, 0);
	struct lsm_id id;

	if (!uid_eq(cred->euid, was->euid) && !uid_eq(cred->euid, was->uid))
		return true;
	if (!gid_eq(cred->egid, was->egid) && !gid_eq(cred->egid, was->gid))
		return true;
	/* Any file gives root all capabilities that are not dropped for ever. */
	if ((!uid_eq(was->uid, root) && !uid_eq(was->euid, root)) || issecure(SECURE_NOROOT))
		if (!cap_issubset(cred->cap_permitted, was->cap_permitted))
			return true;
	lsm_current_id(&id);
	return memcmp(&id, &old->id, sizeof(id));
}

/*
 * Passes the kernel's point of no return, after which the process has new memory. begin_new_exec()
 * takes locks of the process that make_memory() gives up, so nothing comes between them.
 */
static int begin(struct linux_binprm *bprm)
{
	struct linux_binfmt *binfmt = current->mm->binfmt;
	struct subject old = { .cred = get_current_cred() };
	unsigned long flags = current->flags;
	int err;

	lsm_current_id(&old.id);
	err = begin_new_exec(bprm);
	if (!err)
		err = make_memory(bprm, flags, binfmt);
	if (!err && has_gained(&old))
		err = -EPERM;
	put_cred(old.cred);
	return err;
}

/*
 * Replaces what the process executes by a copy of its template. @old: the file of the thread's
 * vCPU. @stub: the size of the stub's mapping. After begin() an error ends the process.
 * Nothing is read from memory of the process.
 */
static int become(struct linux_binprm *bprm, struct file *old, unsigned long stub)
{
	unsigned long fd = task_pt_regs(current)->bx, size = task_pt_regs(current)->r9, at;
	struct file *file;
	int err;

	if (!PAGE_ALIGNED(size) || size < stub)
		return -EINVAL;
	file = child_of_template(vcpu_of(old)->vm);
	if (IS_ERR(file))
		return PTR_ERR(file);
	err = begin(bprm);
	if (!err)
		err = attach(file);
	if (err)
		goto drop;
	at = map_stub(bprm, file, stub, size);
	err = IS_ERR_VALUE(at) ? (long)at : vcpu_replace_file(fd, old, file);
	if (err)
		goto drop;
	vcpu_of(file)->stub = at;
	vcpu_of(file)->pkru = read_pkru();
	finalize_exec(bprm);
	set_registers(bprm, vcpu_of(file), fd);
	return 0;
drop:
	fput(file);
	return err;
}

/*
 * The thread executes its own file by a stub. Without a template the program begins natively, by
 * the kernel's own format. Returns 0 or a negative errno, -ENOEXEC for that format.
 */
static int load_own(struct linux_binprm *bprm, unsigned long stub)
{
	struct file *file = fget(task_pt_regs(current)->bx);
	struct dune_vcpu *vcpu = file ? vcpu_of(file) : NULL;
	int err = -EPERM;

	if (vcpu && vcpu_is_mine(vcpu))
		err = vcpu->vm->template ? become(bprm, file, stub) : -ENOEXEC;
	if (file)
		fput(file);
	return err;
}

/*
 * The kernel asks about each file that any process executes, and for a script or the like also
 * about its interpreter. ENOEXEC means that the other formats are asked. The calls of a stub are
 * recognized by the mapping that the thread executes, since nothing else is certain: another
 * process may change the descriptors.
 */
static int load(struct linux_binprm *bprm)
{
	long stub = stub_size_in_call();

	if (likely(!stub))
		return -ENOEXEC;
	if (stub < 0)
		return stub;
	/*
	 * For an interpreter the kernel may open files that the process itself must not open
	 * (binfmt_misc, flag O).
	 */
	if (bprm->interp != bprm->filename || !is_own_program(bprm->file))
		return -EPERM;
	return load_own(bprm, stub);
}

static struct linux_binfmt format = { .module = THIS_MODULE, .load_binary = load };

/* exec_init() is called at load, and exec_cleanup() before the module is unloaded. */
void __init exec_init(void)
{
	insert_binfmt(&format);
}

void exec_cleanup(void)
{
	unregister_binfmt(&format);
}
