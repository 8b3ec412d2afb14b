/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The interface between dune.ko and libdune.
 *
 * It has the shape of KVM's: an open /dev/dune is an address space (that of
 * the process which opened it), DUNE_CREATE_VCPU makes a vCPU of the calling
 * thread, and DUNE_RUN runs that vCPU until something needs libdune's part in user
 * mode, the host half. A process can have a stub in place of the host half
 * (struct dune_stub).
 *
 * Guest-physical memory is the process's own address space. On AMD the second
 * level is the process's own page table (dune_info.granules is 0), and a
 * guest-physical address is the process's virtual address: a guest page
 * table holds virtual addresses in the place of a machine's physical ones,
 * and CR3 is the virtual address of its root. On Intel, with any width of
 * physical addresses, the guest-physical space is handed out in granules of
 * 1 GB, each to an aligned gigabyte of the process (DUNE_MAP_GRANULE), since
 * on most of Intel's processors it is smaller than the process's. The list of
 * granules belongs to an address space, and fork() does not copy it: a child
 * maps its parent's granules again for its own vCPU. Only a vCPU made by
 * DUNE_MAKE_CHILD has them from the beginning.
 *
 * A vCPU belongs to one thread, which alone runs it: the thread that made it, or the child for
 * which it was made (DUNE_MAKE_CHILD). This is what "the vCPU's thread" means below.
 *
 * At other guest-physical addresses an address space can have private memory
 * (DUNE_ADD_PRIVATE), which only its own guests can reach. Each open /dev/dune
 * has its own, although all address spaces of one process share its memory.
 *
 * All layouts are fixed and little-endian. The ioctls are for 64-bit callers
 * (ENOTTY for others: a 32-bit process has no use for a 64-bit ring 0).
 * The structures that are arguments of an ioctl start with their size in
 * bytes. A size that the kernel does not know, an unknown flag or a non-zero
 * reserved field gives EINVAL; an argument that cannot be read or written
 * gives EFAULT. DUNE_GET_INFO and DUNE_GET_STATE read only the size, and write
 * the whole structure.
 */
#ifndef _UAPI_LINUX_DUNE_H
#define _UAPI_LINUX_DUNE_H

#define DUNE_API_VERSION	6

/* struct dune_stub describes these. */
#define DUNE_STUB_OFFSET	0x1000
#define DUNE_STUB_ENTER		0
#define DUNE_STUB_CALL		16
#define DUNE_STUB_SIGNAL	64
#define DUNE_STUB_READ		80
#define DUNE_STUB_WRITE		96
#define DUNE_STUB_RESULT	1
#define DUNE_STUB_FRAME		2

#ifndef __ASSEMBLER__
#include <linux/ioctl.h>
#include <linux/types.h>

/* dune_info.vendor */
#define DUNE_VENDOR_SVM		1
#define DUNE_VENDOR_VMX		2

/* dune_info.features */
#define DUNE_FEATURE_FAST_SYSCALL	(1ULL << 0) /* system calls in the kernel */
#define DUNE_FEATURE_PCID		(1ULL << 1) /* guest CR4.PCIDE is set */
#define DUNE_FEATURE_SMEP		(1ULL << 2) /* DUNE_VCPU_SMAP sets CR4.SMEP */
#define DUNE_FEATURE_SMAP		(1ULL << 3) /* DUNE_VCPU_SMAP sets CR4.SMAP */

/* dune_create_vcpu.flags */
#define DUNE_VCPU_SMAP			(1U << 0)

/**
 * struct dune_info - what this module offers (DUNE_GET_INFO)
 * @size:		in: sizeof(struct dune_info)
 * @api_version:	DUNE_API_VERSION of the module
 * @vendor:		DUNE_VENDOR_*
 * @address_bits:	width of a guest-physical address in bits, reported as 47
 *			if it is more, since guests use process addresses of 47
 *			bits. If it is less and @granules is 0, a guest reaches
 *			only the process's addresses below 2^address_bits
 * @features:		DUNE_FEATURE_*
 * @guest_cr0:		the guest's CR0 (it cannot be written)
 * @guest_cr4:		the guest's CR4 (it cannot be written), without the bits
 *			that DUNE_VCPU_SMAP adds
 * @guest_efer:		the guest's EFER (it cannot be written)
 * @xcr0:		the guest's XCR0, that of the host; 0 without XSAVE
 * @run_size:		bytes to map from a vCPU's file descriptor
 * @granules:		0: guest-physical addresses are the process's own. Else
 *			granules 1 to @granules - 1 of the guest-physical space
 *			can be mapped with DUNE_MAP_GRANULE
 * @handled_signals:	of the calling process: bit n-1 is set if signal n
 *			has a handler. A runtime takes these signals over when
 *			it enters a guest; asking for each by rt_sigaction()
 *			would be most of the cost of entering.
 * @private_pages:	the number of pages that an address space can have by
 *			DUNE_ADD_PRIVATE; 0: this processor's guest-physical
 *			addresses are too narrow for private memory
 * @reserved:		zero
 */
struct dune_info {
	__u32 size;
	__u32 api_version;
	__u32 vendor;
	__u32 address_bits;
	__u64 features;
	__u64 guest_cr0;
	__u64 guest_cr4;
	__u64 guest_efer;
	__u64 xcr0;
	__u32 run_size;
	__u32 granules;
	__u64 handled_signals;
	__u32 private_pages;
	__u32 reserved;
};

/**
 * struct dune_create_vcpu - argument of DUNE_CREATE_VCPU
 * @size:	sizeof(struct dune_create_vcpu)
 * @flags:	DUNE_VCPU_SMAP: CR4.SMEP and CR4.SMAP are set if the
 *		processor has them (dune_info.features). Ring 0 of the guest
 *		then executes no page that ring 3 can reach, and reads and
 *		writes none while RFLAGS.AC is clear
 * @reserved:	zero
 *
 * The ioctl returns a close-on-exec file descriptor of the new vCPU, which
 * only the calling thread can run. It fails with EPERM in a process other
 * than the one that opened /dev/dune (a child after fork opens it anew, or
 * uses DUNE_RENEW_VCPU), and with ENOSPC if the process has 4,096 vCPUs and a
 * change of its memory has to interrupt each of them (on Intel; on AMD if
 * the kernel flushes TLBs without interrupts). Like any file descriptor it
 * counts towards RLIMIT_NOFILE. It fails with EMFILE or ENFILE without a free
 * descriptor, with ENOMEM, and with EINTR if a fatal signal ends the wait for
 * the lock of the process's memory.
 */
struct dune_create_vcpu {
	__u32 size;
	__u32 flags;
	__u64 reserved[2];
};

/**
 * struct dune_renew_vcpu - argument of DUNE_RENEW_VCPU
 * @size:	sizeof(struct dune_renew_vcpu)
 * @flags:	as dune_create_vcpu.flags
 * @fd:		the descriptor on which the ioctl is called
 * @reserved:	zero
 *
 * For a process that inherited a vCPU's descriptor by fork() or execve(): makes
 * an address space of the calling process and a vCPU of the calling thread, and
 * puts the new vCPU in the inherited descriptor's place at number @fd,
 * close-on-exec. So it needs no free descriptor, no path to /dev/dune and no
 * right to open it. The vCPU that was inherited is not changed; it continues to
 * exist as long as its owner has it open. EPERM on a vCPU that the caller can
 * run itself, EBADF if @fd is another file, EINVAL, and ENOSPC, ENFILE, ENOMEM
 * and EINTR as DUNE_CREATE_VCPU.
 */
struct dune_renew_vcpu {
	__u32 size;
	__u32 flags;
	__s32 fd;
	__u32 reserved;
};

#define DUNE_GRANULE_SIZE	(1ULL << 30)

/**
 * struct dune_granule - argument of DUNE_MAP_GRANULE
 * @size:	sizeof(struct dune_granule)
 * @flags:	zero
 * @guest:	guest-physical address, a multiple of DUNE_GRANULE_SIZE, not 0,
 *		below dune_info.granules * DUNE_GRANULE_SIZE
 * @address:	address in the process, a multiple of DUNE_GRANULE_SIZE below
 *		2^47
 *
 * From now on, and for all vCPUs of the process, the guest-physical granule
 * at @guest is the process's gigabyte at @address. This cannot be undone. The
 * same call again does nothing. EEXIST if either is assigned to another,
 * ENOTTY if dune_info.granules is 0, EINVAL for an address outside these
 * limits, ENOMEM.
 */
struct dune_granule {
	__u32 size;
	__u32 flags;
	__u64 guest;
	__u64 address;
};

/* dune_private.flags */
#define DUNE_PRIVATE_SEALED	(1U << 0)
#define DUNE_PRIVATE_SHOWN	(1U << 1)

/**
 * struct dune_private - argument of DUNE_ADD_PRIVATE
 * @size:	sizeof(struct dune_private)
 * @flags:	0, DUNE_PRIVATE_SEALED or DUNE_PRIVATE_SHOWN
 * @pages:	in: the number of pages of 4 KB, not 0
 * @guest:	out: the guest-physical address of the first one
 * @address:	in: the contents of the pages, in memory of the process, or zero if they are to be
 *		zeroed; not zero with DUNE_PRIVATE_SEALED, and zero with DUNE_PRIVATE_SHOWN
 *
 * Adds pages to the private memory of the vCPU's address space. They are contiguous in
 * guest-physical addresses and follow those that were added before. All vCPUs of the address
 * space reach them. If the flags below do not say otherwise, they do so for every kind of
 * access, and nothing else does: the pages are in no mapping, so no address of the process leads
 * to them, and no other address space has them, even if the same process opened it. A guest can
 * write and execute them even in a process for which PR_SET_MDWE forbids such mappings. The
 * pages are charged to the caller's memory cgroup, and counted as page tables of the process
 * (VmPTE). They are freed with the address space: when its last descriptor and the last
 * descriptor of its vCPUs are closed, and the stub, if one of its vCPUs maps it, is unmapped.
 * The computer does not hibernate while an address space has such pages.
 *
 * With DUNE_PRIVATE_SEALED no guest can write the pages: a write is a nested
 * fault that is not resolved. The processor itself writes guest page tables, so these
 * cannot be in sealed pages, and it writes a segment descriptor whose accessed
 * bit is clear. DUNE_MAKE_CHILD copies all other pages and shares sealed ones,
 * which are charged once, to the cgroup of the process that added them.
 *
 * With DUNE_PRIVATE_SHOWN the pages are the window of the address space: the process can read
 * them, and so can the kernel for it, in the mapping of the stub (struct dune_stub). Nobody but
 * the guests can write them. So the kernel reads from the window exactly what the guests have
 * written there. An address space has one window at most.
 *
 * The ioctl fails with ENOTTY if dune_info.private_pages is 0, with EINVAL for no pages, for both
 * flags and for an @address that does not fit to @flags, with EEXIST for a second window, with
 * ENOSPC if the address space would have more than dune_info.private_pages, with ENOMEM, with EBUSY
 * while the computer hibernates, and with EINTR for a fatal signal. If it fails, nothing was added,
 * with one exception: if another thread unmaps the argument during the call, EFAULT can mean that
 * the pages were added and their address was not returned.
 */
struct dune_private {
	__u32 size;
	__u32 flags;
	__u64 pages;
	__u64 guest;
	__u64 address;
};

/*
 * The stub is a page of the module's code, for a process whose other code cannot be trusted
 * with what DUNE_RUN leaves to user mode. It runs a vCPU:
 *
 *	DUNE_STUB_ENTER:  lseek(EDI, RSI, EDX)	enters the guest
 *			  UD2			what lseek() returns is never used
 *	DUNE_STUB_CALL:	  SYSCALL		the guest's call, with its number and arguments
 *			  and then as from DUNE_STUB_ENTER, with lseek(EBX, the result,
 *			  DUNE_STUB_RESULT)
 *
 * The thread jumps to DUNE_STUB_ENTER with the vCPU's descriptor in EDI and EBX, and 0 in EDX.
 * From then on it executes nothing but the stub in user mode, and there is no host half. The
 * module lets it continue at DUNE_STUB_CALL where DUNE_RUN would return with DUNE_EXIT_SYSCALL.
 *
 * The page is mapped by mmap() of a vCPU's descriptor at offset DUNE_STUB_OFFSET:
 *
 *  - The vCPU's thread maps it, MAP_SHARED and without PROT_WRITE. Else mmap() fails with EPERM or
 *    EINVAL.
 *  - A process's memory has one stub. A second mmap() fails with EBUSY.
 *  - The mapping may have more pages than one. Those after the stub are the pages of the window
 *    that the vCPU's address space has or gets (DUNE_PRIVATE_SHOWN), in their order. An access to a
 *    page that the window does not have is a SIGBUS.
 *  - The mapping can be read and executed. Nobody can write it, and mprotect() fails with EACCES.
 *  - No part of the mapping can be unmapped or changed by itself: EINVAL.
 *  - If the whole mapping is unmapped, replaced, or moved by mremap(), SIGKILL ends all processes
 *    that share the memory.
 *  - A child with a copy of the memory inherits the mapping, with the window of its own address
 *    space (DUNE_MAKE_CHILD), or else without a window.
 *  - The mapping keeps the address space of the vCPU, with its private memory, until it is
 *    unmapped.
 *
 * DUNE_SET_STUB binds a vCPU to the stub at an address. Several vCPUs may be bound to one. From
 * then on the module refuses calls of the guest with which it could direct a thread of the process
 * in user mode. (It does not see the requests of io_uring in a ring that was made before: a process
 * that runs untrusted code must have none.)
 *
 *	rt_sigaction, sigaltstack, rt_sigreturn, rseq, clone, clone3, fork, vfork, execve,
 *	execveat, ptrace, prctl(PR_SET_SYSCALL_USER_DISPATCH), prctl(PR_SET_MM),
 *	ioctls of this file, io_uring_setup, io_uring_enter, io_uring_register,
 *	madvise(MADV_DONTFORK) of the stub, process_madvise(MADV_DONTFORK)	EPERM
 *	numbers that the kernel does not have					ENOSYS
 *
 * DUNE_RUN of such a vCPU fails with EINVAL. Ring 0 of the guest does what a host half would do:
 *
 *  - If the thread has work in user mode, it continues at DUNE_STUB_ENTER, and enters again.
 *  - A nested fault that the kernel did not resolve raises #PF in the guest, at the instruction
 *    that made the access. The error code has DUNE_PF_NESTED and P, and also W/R for a write, I/D
 *    for a fetch, and U/S for ring 3. CR2 and dune_run.fault_address are the process's address.
 *    With DUNE_FAULT_GUEST in dune_run.fault_flags they are the guest-physical address. Neither
 *    has to be the linear address with which the guest made the access.
 *  - A hypercall with RAX = DUNE_HOSTCALL | number is that call, which the stub makes. It is a
 *    privileged call: none is refused but execve, execveat other than as below, and numbers that
 *    the kernel does not have (ENOSYS). A child that such a call makes needs a vCPU
 *    (DUNE_MAKE_CHILD, below). With RAX = DUNE_PROBE_READ or DUNE_PROBE_WRITE the stub accesses the
 *    byte at RDI in user mode, without changing it, so that the kernel grows a stack or sends the
 *    signal for the access; the result is 0. Other numbers from DUNE_PROBE_READ on have the result
 *    -ENOSYS, but for those below.
 *  - For a signal that the guest wants, it sets the kernel's action by a privileged rt_sigaction:
 *    the handler at DUNE_STUB_SIGNAL, SA_SIGINFO, SA_ONSTACK, SA_RESTORER (the kernel demands it;
 *    the restorer is never used), and a mask of all signals. By a privileged sigaltstack it gives
 *    the kernel a stack, on which each frame begins at the top, since RSP is 0 in the stub. The
 *    handler enters the guest by lseek(EBX, the address of the frame's struct ucontext,
 *    DUNE_STUB_FRAME), and never returns. The module fills in dune_run.signal and sets
 *    dune_run.irq_vector to dune_stub.irq_vector. All signals are blocked until the guest sets
 *    another mask (rt_sigprocmask), so the next frame comes after that. A probe that faults while
 *    its signal is blocked ends the process. The FPU registers are in their initial state. Those
 *    that the thread had before the signal are in the frame, from which the guest loads them.
 *  - A signal can come in a system call or a probe of the guest, or before it. What the guest finds
 *    after it:
 *
 *	what happened				RAX			dune_run.signal.again
 *	the call has ended			its result		0
 *	the call was interrupted, and the
 *	  action is without SA_RESTART, or
 *	  the kernel never restarts it		-EINTR			0
 *	the kernel restarts the call		as before the call	1
 *	the kernel continues the call		__NR_restart_syscall	1
 *	the call or the probe was not made	as before the call	1
 *
 *    The guest sets the field to 0, and decides itself whether it makes the call again. A call is
 *    not made as long as an interrupt waits in dune_run.irq_vector, and a probe is not made as long
 *    as dune_run.signal.waiting is 1. The processor takes the interrupt away when it delivers it;
 *    the guest sets dune_run.signal.waiting to 0 when it has read dune_run.signal.
 *  - A hypercall with RAX = DUNE_HOSTCALL_NOW | number is a privileged call that is made
 *    although the interrupt waits, for calls that the runtime makes for itself. It must not wait
 *    for anything, since a signal that has come does not interrupt it. If none has come, one can
 *    still come before the call, as described above.
 *  - A hypercall with RAX = DUNE_ADD_PAGES adds RDI zeroed pages to private memory, as
 *    DUNE_ADD_PRIVATE does. The result is the guest-physical address of the first one, or an error
 *    of DUNE_ADD_PRIVATE. Neither is in memory, where the program could change it.
 *  - A privileged execve or execveat executes the file that the process executes already
 *    (/proc/self/exe), by whatever name or descriptor. For another file, and for a file that needs
 *    an interpreter, the result is -EPERM.
 *
 *    If the vCPU was bound with DUNE_STUB_TEMPLATE, nothing of the file is mapped or executed. The
 *    module makes a vCPU with the state and the private memory that the bound one had then, and
 *    puts it in the place of the thread's. The thread's descriptor, in RBX, must not be
 *    close-on-exec: without it the process ends. EPERM if it is not the thread's vCPU. The vCPU's
 *    children have the same template.
 *
 *    The stub is mapped at another address, below the stack, as long as before, with memory of the
 *    process after it: R9 bytes in all. The stack can still grow to its limit (RLIMIT_STACK).
 *    EINVAL if R9 is not a number of whole pages or is less than the stub's mapping. There is no
 *    vDSO yet (arch_prctl(ARCH_MAP_VDSO_64)), and nothing below the strings on the stack: no
 *    vectors. All else is as after any execve.
 *
 *    The thread enters the guest by the stub. The guest has the registers of dune_stub.regs, but
 *
 *	RAX	0
 *	RDI	the address of the stub
 *	RSI	the address of the strings: the arguments, then the environment
 *	RDX	the number of arguments, and in the upper half that of strings in the environment
 *	RCX	the address of the name (AT_EXECFN)
 *	R8	AT_SECURE
 *	R9	the descriptor
 *
 *    The process is killed instead if the file would give it rights that a plain file does not
 *    give: it is set-uid or set-gid for somebody else, has capabilities, or changes the identifier
 *    by which security modules know the process (TOMOYO has none).
 *  - A hypercall with RAX = DUNE_FIND_VDSO has the address of the vDSO as its result, or 0.
 *  - A hypercall with RAX = DUNE_IGNORED_SIGNALS has as its result a bit for each signal (bit 0 for
 *    signal 1) whose action is SIG_IGN.
 *  - A hypercall with RAX = DUNE_STUB_MOVE makes the stub use the descriptor RDI, which is of the
 *    same vCPU, from now on. The result is 0.
 *  - The process is killed if the guest halts, shuts down or is left for an unexpected reason
 *    (DUNE_EXIT_HLT and the following), if a nested fault that the kernel did not resolve comes
 *    while an event is delivered, if a signal's frame cannot be read, where DUNE_RUN would fail,
 *    and if the thread has registered restartable sequences (rseq).
 */

/*
 * Children of a guest without a host half. Before a privileged clone, clone3, fork or vfork, ring 0
 * of the guest makes a vCPU for the child, by a hypercall with RDI = the RIP with which the child's
 * guest begins, and RAX = one of
 *
 *	DUNE_MAKE_CHILD		for a child with a copy of the memory. It gets an address space of
 *				its own, with a copy of the private memory at the same addresses
 *				(sealed pages are not copied but shared), and with the granules that
 *				the caller's process has now.
 *	DUNE_MAKE_SHARED_CHILD	for a child or thread with the same memory (CLONE_VM). It gets
 *				another vCPU of the same address space.
 *
 * The result is 0, or -ENOMEM, -ENOSPC, -ENFILE, -EAGAIN, -EBUSY or -EINTR as from
 * DUNE_CREATE_VCPU, DUNE_GET_STATE and DUNE_ADD_PRIVATE. No descriptor is made. The vCPU has
 * the registers and the state of the caller's, but RIP, and RAX 0, which is also the result of the
 * call that makes the child. dune_run has the caller's flags. After DUNE_MAKE_CHILD, dune_run
 * is at the same guest-physical address as the caller's, and pages that are, or were, dune_run of
 * other vCPUs are zeroed and used again. After DUNE_MAKE_SHARED_CHILD, it is
 * at another one, which RDI contains; the page may have been that of a vCPU that is gone.
 *
 * The vCPU is for the next child of the calling thread, and replaces one that was made before and
 * not used:
 *
 *  - DUNE_MAKE_CHILD: the fork itself takes it, so the caller may continue at once. If the
 *    fork fails after that, it is gone.
 *  - DUNE_MAKE_SHARED_CHILD: the child takes it at its first lseek(). Until then the caller must
 *    make no other: it waits in CLONE_VFORK, or by its own means.
 *
 * After the call the child is in the stub, with RBX as its parent's. Its first lseek() finds that
 * the descriptor is its parent's, binds the vCPU that was made to the child, puts it in the
 * descriptor's place, close-on-exec, and lets the stub begin anew. This needs no free descriptor,
 * no path and no right. A child that shares its parent's table of descriptors (CLONE_FILES)
 * gets the lowest free number, in RBX. A child for which no vCPU was made, or one of the
 * other kind, and one for which there is no memory or number, dies of SIGILL; so does the calling
 * process if the child is its thread. If the guest has an action for SIGILL, the kernel then
 * first writes a frame on the alternate stack that the child has, which with vfork is the parent's.
 */

/* In the error code of #PF: the second level did not permit the access (struct dune_stub). */
#define DUNE_PF_NESTED		(1U << 14)

/* The order of the first sixteen is that of the instruction encoding. */
struct dune_regs {
	__u64 rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi;
	__u64 r8, r9, r10, r11, r12, r13, r14, r15;
	__u64 rip, rflags;
};

/* dune_stub.flags */
#define DUNE_STUB_TEMPLATE		(1U << 0)

/**
 * struct dune_stub - argument of DUNE_SET_STUB
 * @size:	sizeof(struct dune_stub)
 * @flags:	zero or DUNE_STUB_TEMPLATE
 * @address:	of the stub
 * @irq_vector:	the interrupt (32 to 255) by which the guest learns of a signal
 * @reserved:	zero
 * @run:	out: the guest-physical address of struct dune_run. Its page is now private memory
 *		of the address space (DUNE_ADD_PRIVATE), and mmap() of it fails with EBUSY. It is
 *		not given back with the vCPU, and only DUNE_MAKE_SHARED_CHILD uses it again: an
 *		address space can have dune_info.private_pages of such vCPUs in all
 * @regs:	the registers with which the guest begins
 *
 * EINVAL if no stub begins at @address or @irq_vector is not in its range, EBUSY if the vCPU is
 * bound already or is in a run, or if struct dune_run was mapped before, EINTR if a fatal signal
 * ends the wait for the lock of the process's memory, and the errors of DUNE_ADD_PRIVATE. With
 * DUNE_STUB_TEMPLATE also those of DUNE_MAKE_CHILD, and EEXIST if the address space has a template;
 * the vCPU cannot be bound then. If another thread unmaps the argument during the call, EFAULT can
 * mean that the vCPU was bound and @run was not returned.
 */
struct dune_stub {
	__u32 size;
	__u32 flags;
	__u64 address;
	__u32 irq_vector;
	__u32 reserved;
	__u64 run;
	struct dune_regs regs;
};

/**
 * struct dune_segment - a segment register with its hidden part
 * @selector:	visible selector
 * @attributes:	as in a descriptor: bits 0-7 type, S, DPL, P; bits 8-11 AVL,
 *		L, D/B, G
 * @limit:	in bytes, already scaled by G
 * @base:	made canonical for the guest: bits 63 to 48 become bit 47
 */
struct dune_segment {
	__u16 selector;
	__u16 attributes;
	__u32 limit;
	__u64 base;
};

/**
 * struct dune_state - the state of a vCPU besides its general registers
 * @size:	sizeof(struct dune_state)
 * @cpl:	current privilege level, 0 to 3
 * @cr2:	control registers 2 and 3
 * @cr3:	see @cr2
 * @cs:		segment registers
 * @ss:		see @cs
 * @ds:		see @cs
 * @es:		see @cs
 * @fs:		see @cs
 * @gs:		see @cs
 * @tr:		the task register
 * @ldtr:	the register of the local descriptor table
 * @gdtr:	of the descriptor tables; base and limit only
 * @idtr:	see @gdtr
 * @star:	the MSRs of SYSCALL
 * @lstar:	see @star
 * @cstar:	see @star
 * @sfmask:	see @star
 * @kernel_gs_base: the MSR that SWAPGS exchanges with the base of GS
 * @sysenter_cs: the MSRs of SYSENTER
 * @sysenter_esp: see @sysenter_cs
 * @sysenter_eip: see @sysenter_cs
 * @reserved:	zero
 *
 * DUNE_GET_STATE and DUNE_SET_STATE, by the vCPU's thread only. CR0, CR4 and
 * EFER belong to the kernel (struct dune_info shows them). @cpl above 3, and a
 * TR that is not a present, busy 64-bit TSS (attributes 0x8b), give EINVAL. Any
 * other state that the processor refuses to enter ends the next run with
 * DUNE_EXIT_INVALID. On VT-x the addresses in @gdtr, @idtr, @lstar, @cstar,
 * @kernel_gs_base, @sysenter_esp and @sysenter_eip are made canonical as
 * dune_segment.base is, since the processor would refuse others.
 * On VT-x DUNE_GET_STATE can fail with EAGAIN, while virtualization is off on
 * the CPU of the caller, or the CPU refuses to turn it on. DUNE_RUN waits there
 * instead, with the state unchanged, until the CPU has it on, the thread runs on
 * another CPU, or a signal ends the run. On VT-x a signal that is not fatal can
 * end the run only when the guest's RIP, RSP and RFLAGS can be read: the CPU must
 * have virtualization on, or turn it on, unless they were read before.
 */
struct dune_state {
	__u32 size;
	__u32 cpl;
	__u64 cr2;
	__u64 cr3;
	struct dune_segment cs, ss, ds, es, fs, gs, tr, ldtr;
	struct dune_segment gdtr, idtr;
	__u64 star;
	__u64 lstar;
	__u64 cstar;
	__u64 sfmask;
	__u64 kernel_gs_base;
	__u64 sysenter_cs;
	__u64 sysenter_esp;
	__u64 sysenter_eip;
	__u64 reserved[8];
};

/* dune_run.exit_reason */
#define DUNE_EXIT_NONE		0 /* never run */
#define DUNE_EXIT_INTR		1 /* the thread has work in user mode: run again */
#define DUNE_EXIT_SYSCALL	2 /* execute the system call in regs, set rax */
#define DUNE_EXIT_HOSTCALL	3 /* a hypercall to the host half itself */
#define DUNE_EXIT_FAULT		4 /* a nested page fault that the kernel did not
				   * resolve: fault_address, fault_flags
				   */
#define DUNE_EXIT_HLT		5 /* HLT in ring 0; RIP is after it */
#define DUNE_EXIT_SHUTDOWN	6 /* triple fault: the vCPU is dead */
#define DUNE_EXIT_INVALID	7 /* the processor refused the state; regs are
				   * unchanged, dune_state is that of a new vCPU
				   */
#define DUNE_EXIT_UNKNOWN	8 /* the guest was left for an unexpected reason */

/*
 * A hypercall (VMMCALL or VMCALL, ring 0 only; #UD elsewhere) with RAX below
 * 2^32 is a system call: number in RAX, arguments in RDI, RSI, RDX, R10, R8,
 * R9, result in RAX, no other register changed. With a bit of the upper half
 * of RAX set it is a message to the host half: DUNE_EXIT_HOSTCALL. (If the vCPU is bound to a
 * stub, there is no host half. The text about the stub above describes which calls the module then
 * refuses, and which messages exist.)
 */
#define DUNE_HOSTCALL		(1ULL << 32)
#define DUNE_PROBE_READ		(2ULL << 32)
#define DUNE_PROBE_WRITE	(3ULL << 32)
#define DUNE_MAKE_CHILD		(4ULL << 32)
#define DUNE_MAKE_SHARED_CHILD	(5ULL << 32)
#define DUNE_HOSTCALL_NOW	(6ULL << 32)
#define DUNE_STUB_MOVE		(7ULL << 32)
#define DUNE_ADD_PAGES		(8ULL << 32)
#define DUNE_FIND_VDSO		(9ULL << 32)
#define DUNE_IGNORED_SIGNALS	(10ULL << 32)

/* dune_run.flags */
#define DUNE_RUN_SLOW_SYSCALL	(1U << 0) /* every system call exits */

/* dune_run.fault_flags */
#define DUNE_FAULT_WRITE	(1U << 0)
#define DUNE_FAULT_EXEC		(1U << 1)
#define DUNE_FAULT_TABLE	(1U << 2) /* in a walk of the guest's page table */
#define DUNE_FAULT_GUEST	(1U << 3) /* fault_address is guest-physical */

/* indices of dune_run.counters */
enum dune_counter {
	DUNE_COUNT_EXITS,		/* all VM exits */
	DUNE_COUNT_SYSCALL_FAST,	/* system calls done in the kernel */
	DUNE_COUNT_SYSCALL_SLOW,	/* DUNE_EXIT_SYSCALL */
	DUNE_COUNT_FAULT,		/* nested page faults */
	DUNE_COUNT_INTERRUPT,		/* exits for interrupts of the host */
	DUNE_COUNT_EXCEPTION,		/* exceptions raised for forbidden instructions */
	DUNE_COUNT_HOSTCALL,		/* DUNE_EXIT_HOSTCALL */
	DUNE_COUNT_OTHER,		/* exits of any other kind */
	DUNE_COUNT_TLB_FLUSH,		/* entries that flushed the vCPU's TLB tag */
	DUNE_COUNT_MIGRATION,		/* the first entry, and each on another CPU */
	DUNE_COUNT_MAX = 16
};

/**
 * struct dune_signal - a signal that the thread of a vCPU with a stub has taken (struct dune_stub)
 * @info:	siginfo_t
 * @mask:	of the thread, before the signal (uc_sigmask)
 * @trap:	uc_mcontext.trapno, .err and .cr2, which describe the thread's last exception
 * @error:	see @trap
 * @cr2:	see @trap
 * @fpstate:	uc_mcontext.fpstate: the address of the FPU registers as XSAVE has written them
 * @again:	1: the last hypercall was not made, or has to be made again; the guest clears it
 * @waiting:	1: the guest has not read this signal yet; the guest clears it
 *
 * All but @again and @waiting are values from the frame, which lies in the process's memory: the
 * program may have changed them.
 */
struct dune_signal {
	__u64 info[16];
	__u64 mask;
	__u64 trap;
	__u64 error;
	__u64 cr2;
	__u64 fpstate;
	__u32 again;
	__u32 waiting;
};

/**
 * struct dune_run - shared by the kernel and the vCPU's thread, one page
 * @regs:	general registers; the kernel reads them when DUNE_RUN starts
 *		and writes them before it returns
 * @flags:	in: DUNE_RUN_*
 * @irq_vector:	in: deliver this vector (32 to 255) as soon as RFLAGS.IF
 *		allows; 0: none. Out: 0 once the guest has taken it, else still
 *		the vector, which the next run delivers.
 * @exit_reason: out: DUNE_EXIT_*
 * @restart:	out, DUNE_EXIT_SYSCALL: 0, or the positive ERESTART* number
 *		(512 to 516) with which a signal interrupted the call in the
 *		kernel; the host half then decides whether the guest gets EINTR
 *		or executes the call again
 * @fault_flags: out, DUNE_EXIT_FAULT: DUNE_FAULT_*
 * @reserved0:	zero
 * @fault_address: out, DUNE_EXIT_FAULT: address in the process, or, with
 *		DUNE_FAULT_GUEST, the guest-physical address, to which no
 *		address of the process belongs
 * @hw_exit:	out: the processor's exit code, for diagnosis
 * @hw_info1:	out: EXITINFO1 or the exit qualification, which is 0 after a
 *		hypercall
 * @hw_info2:	out: EXITINFO2, or the guest-physical address of an EPT
 *		violation, 0 after other exits
 * @reserved1:	zero
 * @counters:	running counts since the vCPU was made, by enum dune_counter
 * @signal:	out, if the vCPU is bound to a stub: the last signal
 *
 * mmap() of the vCPU's file descriptor at offset 0 with MAP_SHARED, by the
 * vCPU's thread (others: EPERM), once (then EBUSY, even after it was
 * unmapped: a descriptor that was stolen gives no second mapping). A child does
 * not inherit the mapping (VM_DONTCOPY), unless madvise(MADV_DOFORK) was called.
 */
struct dune_run {
	struct dune_regs regs;
	__u32 flags;
	__u32 irq_vector;
	__u32 exit_reason;
	__u32 restart;
	__u32 fault_flags;
	__u32 reserved0;
	__u64 fault_address;
	__u64 hw_exit;
	__u64 hw_info1;
	__u64 hw_info2;
	__u64 reserved1[8];
	__u64 counters[DUNE_COUNT_MAX];
	struct dune_signal signal;
};

#define DUNE_IOC_TYPE		0xDE

/* on /dev/dune (the first on a vCPU, too) */
#define DUNE_GET_INFO		_IOWR(DUNE_IOC_TYPE, 0x00, struct dune_info)
#define DUNE_CREATE_VCPU	_IOW(DUNE_IOC_TYPE, 0x01, struct dune_create_vcpu)

/*
 * on a vCPU; EPERM in another thread or process than the vCPU's thread.
 * DUNE_RENEW_VCPU is the opposite: EPERM in the vCPU's thread.
 *
 * DUNE_RUN takes no argument (zero) and returns 0 with dune_run.exit_reason
 * set. EINVAL: unknown flags, non-zero reserved fields or a bad vector in
 * struct dune_run. EBUSY: the vCPU is in DUNE_RUN; also from DUNE_SET_STATE.
 */
#define DUNE_RUN		_IO(DUNE_IOC_TYPE, 0x10)
#define DUNE_GET_STATE		_IOWR(DUNE_IOC_TYPE, 0x11, struct dune_state)
#define DUNE_SET_STATE		_IOW(DUNE_IOC_TYPE, 0x12, struct dune_state)
#define DUNE_MAP_GRANULE	_IOW(DUNE_IOC_TYPE, 0x13, struct dune_granule)
#define DUNE_RENEW_VCPU		_IOW(DUNE_IOC_TYPE, 0x14, struct dune_renew_vcpu)
#define DUNE_ADD_PRIVATE	_IOWR(DUNE_IOC_TYPE, 0x15, struct dune_private)
#define DUNE_SET_STUB		_IOWR(DUNE_IOC_TYPE, 0x16, struct dune_stub)

#endif /* __ASSEMBLER__ */
#endif /* _UAPI_LINUX_DUNE_H */
