/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * <dune.h>: the interface of libdune.
 *
 * dune_enter() moves the calling thread into Dune mode: the thread continues
 * in ring 0 of its own virtual machine, in the same address space, on the same
 * stack, with the same files, and all of libc works as before. From then on it
 * may use what ring 0 offers: exceptions, page tables, the TLB, and ring 3 for
 * code that it does not trust.
 *
 * To compile a program: "cc hello.c -ldune" where libdune is installed (make install, or the
 * package dune), and in the source tree "cc -Ilibdune/include hello.c build/lib/libdune.a". The
 * library is static. This header is for C and for C++.
 *
 * Conventions. Functions that can fail return 0 or a negative errno number
 * (-ENOMEM); none sets errno. Lengths and sizes are in bytes, addresses are
 * virtual. "Ring 0" as a context means: only after dune_enter() returned 0, on
 * that thread. All functions may be called from any thread in Dune mode, with
 * interrupts on or off, and from trap handlers. Each takes the locks that it
 * needs itself. None blocks, unless its description tells otherwise, but one that
 * needs a page may map memory by a system call.
 *
 * Before dune_enter(), and later in a thread outside the guest, dune_trap_set(),
 * dune_syscall_set() and dune_stats() work. Functions that need the guest fail:
 * with -EPERM (dune_ring3(), dune_pt_load(), dune_tlb_pcid()), with NULL
 * (dune_pt_root()), or by doing nothing (dune_tlb_page(), dune_tlb_all()).
 *
 * All functions on page tables but dune_pt_load() work outside the guest, too, with the root
 * of a thread inside. (One page by dune_pt_protect() or dune_pt_unmap(): see below.) They
 * change the table, but flush no TLB: threads that run on the root must flush theirs, as after
 * a change by any other thread. Outside the guest dune_pt_root() returns NULL, and with NULL
 * these functions fail, with -EPERM or NULL. The arena can be used outside, too, once a
 * thread has entered; before, dune_page_alloc() returns NULL.
 *
 * In a thread outside the guest, a handler of a signal must not call a function of the
 * library if it may have interrupted one.
 *
 * Some functions do not check. Outside the guest
 *  - dune_cr2(), dune_irq_*(), dune_hypercall() and dune_syscall_forward(), which
 *    use instructions of the guest, end in a signal;
 *  - dune_pt_protect() and dune_pt_unmap() of one page of 4 KB of the first page
 *    table end in a signal;
 *  - dune_copy() copies, but ends in SIGSEGV if either side cannot be reached;
 *  - dune_gpa() and dune_va() translate, but before dune_enter() they return the
 *    address itself, which on Intel is wrong later.
 *
 * The only interrupts of the guest are the process's signals. While RFLAGS.IF
 * is clear (in trap handlers, between dune_irq_save() and dune_irq_restore())
 * handlers of signals wait. The library uses vector DUNE_VECTOR_SIGNAL for
 * them. In ring 0 it reserves the GS base for itself, and RFLAGS.IOPL, which
 * tells ring 0 (1) from ring 3 (0).
 *
 * A program in ring 0 cannot use GS, make threads (clone() with CLONE_THREAD
 * gives ENOSYS), or use I/O ports, control registers and debug registers.
 *
 * Until the child of clone() with CLONE_VFORK and without CLONE_VM has executed a program or
 * ended, the library's locks are held. Meanwhile these wait:
 *  - any other thread that enters Dune mode, calls dune_stats(), or needs or changes pages;
 *  - in Dune mode, a thread, or a child that shares memory, that ends, makes a child, closes
 *    descriptors (also by close_range()), calls dup2() or dup3(), or reads or changes signal
 *    actions that it shares.
 * A thread that waits in Dune mode runs no handler. If the child waits for one of them, both wait
 * for ever.
 *
 * A child of clone() with CLONE_FILES and without CLONE_VM shares descriptors with its
 * parent, but neither knows the other's vCPU: one that closes descriptors which it has not
 * opened can end the other.
 *
 * Only threads outside the guest make threads, which are outside, too. A thread that does
 * not call dune_enter() stays an ordinary thread of Linux. More than one may call it:
 * they share page tables, trap handlers and the actions of signals, and each
 * has a TLB of its own, which only its own calls flush. A thread that ends gives back
 * its vCPU and the library's memory for it, but no pages or roots that it allocated; the
 * process's first thread does so with the process.
 *
 * A child that a thread in Dune mode makes by fork() is in Dune mode, too, with a copy of
 * the page tables, handlers and pages; as always, only the thread that called
 * fork() exists in it. A thread outside Dune mode may fork while others are in it, but
 * its child must not call functions of the library.
 */
#ifndef DUNE_H
#define DUNE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- entering --------------------------------------------------------- */

/**
 * struct dune_config - how to enter; all zero but size is a good default
 * @size:	sizeof(struct dune_config)
 * @flags:	DUNE_ENTER_*
 * @arena:	memory for page tables and thread blocks, 64 KB aligned, mapped
 *		readable and writable, zeroed; with NULL libdune finds its own
 *		(up to 256 MB, of which it uses what it accesses)
 * @arena_size:	bytes of @arena, 256 KB or more; 0 with NULL
 * @super_base:	start of the supervisor range, which ring 3 cannot reach, 1 GB
 *		aligned
 * @super_size:	its size, a multiple of 1 GB; with 0 ring 3 can reach everything,
 *		page tables and trap handlers included. Libdune's data and the
 *		arena must be in the range. With base 0 and size 1 << 47 ring 3
 *		reaches only what dune_pt_protect() and dune_pt_map() give it
 *		with DUNE_PTE_U
 * @arena_limit: 0, or the number of bytes from @arena on that libdune may use, at
 *		least @arena_size, within one aligned gigabyte; libdune maps those
 *		above @arena_size when it needs them. Both sizes are then multiples
 *		of 1 MB
 * @reserved:	zero
 */
struct dune_config {
	uint32_t size;
	uint32_t flags;
	void *arena;
	uint64_t arena_size;
	uint64_t super_base;
	uint64_t super_size;
	uint64_t arena_limit;
	uint64_t reserved[3];
};

/*
 * With a supervisor range that holds all of ring 0's code, data and stacks:
 * CR4.SMEP and CR4.SMAP are set if the processor has them. Ring 0 then
 * executes no memory outside the range, and accesses it by dune_copy() alone;
 * anything else there is a page fault.
 */
#define DUNE_ENTER_SMAP		(1U << 0)

/*
 * Handlers of signals belong to ring 3: ring 3 installs them itself (by calls of
 * rt_sigaction that the handler of its system calls passes on), and they run in
 * ring 3, on its stack. Ring 0 starts with interrupts off; while ring 0 has them
 * on, handlers run in ring 0. The section "ring 3" below describes what happens
 * without this flag.
 */
#define DUNE_ENTER_RING3_SIGNALS	(1U << 1)

/**
 * dune_enter() - take the calling thread into Dune mode
 * @cfg:	NULL for the default, or for the configuration that the process has
 *
 * Returns 0 in ring 0 of the guest (also when the thread is in ring 0 already),
 * or a negative errno number, still outside the guest: -ENOENT or -ENODEV (no
 * /dev/dune, or guest-physical addresses of too few bits), -EACCES, -ENOMEM,
 * -EINVAL (bad configuration), -EBUSY (the process was set up with another
 * configuration, by a call that succeeded or that failed after its configuration
 * was accepted), -EPROTO (a module of another version), -EOPNOTSUPP (under
 * valgrind, which interprets instructions), or another error of open() or of
 * DUNE_CREATE_VCPU (<linux/dune.h>): for instance -EMFILE, -ENFILE, -ENOSPC or
 * -EINTR. dune_enter_error() describes the error in words.
 *
 * Threads enter one after the other. So a signal's handler must not call this if it may
 * have interrupted another call: it would wait for ever.
 *
 * On AMD the time that this takes hardly depends on the number of mappings that
 * the process has. On Intel it grows with that number, because registering the
 * mmu notifier locks every mapping (5.6 million instructions with 10,000 mappings).
 * The same is true on AMD where the kernel flushes TLBs without interrupts
 * (INVLPGB, or under a hypervisor that flushes for it).
 */
int dune_enter(const struct dune_config *cfg);

/**
 * dune_enter_error() - why the last dune_enter() failed, in words
 *
 * A text for people that names the member of the configuration that is wrong, or
 * the resource that could not be had; NULL if no call failed since the last one
 * that succeeded. The text is static, and is that of the last call by any thread.
 */
const char *dune_enter_error(void);

#define DUNE_CS		0x10	/* the code segment of ring 0 */

/* Returns whether the caller runs in ring 0 of a guest. Callable anywhere. */
static inline int dune_active(void)
{
	uint16_t cs;

	/* Valgrind interprets instructions, and gives 0 here. */
	__asm__ volatile("mov %%cs, %0" : "=r" (cs));
	return cs == DUNE_CS;
}

/* ---- traps ------------------------------------------------------------ */

/* dune_tf.vector of a system call from ring 3 (or a special one from ring 0) */
#define DUNE_VECTOR_SYSCALL	256
#define DUNE_VECTOR_PF		14	/* page fault; dune_cr2() is its address */
#define DUNE_VECTOR_SIGNAL	32
#define DUNE_VECTORS		256

/**
 * struct dune_tf - all registers of interrupted code; a handler may change any
 * @r15:	and @r14 to @r8, @rbp, @rbx, @rdx, @rsi, @rdi: as they were
 * @rax:	of a system call: the number in and the result out
 * @rcx:	of a system call: the return address, as @rip
 * @r11:	of a system call: the flags, as @rflags
 * @vector:	exception, or DUNE_VECTOR_SYSCALL
 * @error:	the exception's error code, 0 where it has none
 * @rip:	where the code continues
 * @cs:		@cs & 3 is the ring that was interrupted
 * @rflags:	the flags
 * @rsp:	the stack pointer
 * @ss:		the stack segment
 *
 * The FPU's registers are not in the frame: they still have the values of the interrupted
 * code.
 */
struct dune_tf {
	uint64_t r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8;
	uint64_t rax, rcx, rdx, rsi, rdi;
	uint64_t vector, error;
	uint64_t rip, cs, rflags, rsp, ss;
};

typedef void (*dune_trap_fn)(struct dune_tf *tf);

/*
 * The handler uses FPU, SSE or AVX registers, or calls code that does (most
 * of libc): they are saved before and restored after it. Without this flag
 * nothing is saved, and the handler and everything that it calls must be
 * compiled with -mgeneral-regs-only.
 *
 * The cost of a page fault whose handler only returns, in instructions: 63 on AMD and 64 on Intel
 * for a write to a page without DUNE_PTE_W, 205 if DUNE_PTE_P is clear (the library
 * first looks whether the address was merely not used before); with this flag,
 * 140 more. So clear W rather than P if the event allows it.
 */
#define DUNE_TRAP_FPU		(1U << 0)

/**
 * dune_trap_set() - handle a vector
 * @vector:	0 to 31, except 2, 8 and 18
 * @fn:		the handler, or NULL to go back to the default
 * @flags:	DUNE_TRAP_*
 *
 * @fn runs in ring 0 with interrupts off: on the interrupted stack, 128 bytes
 * (the red zone) below its top, if ring 0 was interrupted, else on the
 * thread's ring-0 stack (32 KB). @fn may fault itself. When it returns, the
 * registers in the frame are loaded. For a trap that it does not want to handle
 * it calls dune_trap_default() and returns. The default is the signal that Linux
 * would send.
 *
 * A handler may leave a trap of ring 0 by longjmp(), which does not turn
 * interrupts on again: call dune_irq_enable() at its destination, or no signal
 * is ever handled. Registers that DUNE_TRAP_FPU saved are not restored in this
 * case. A handler leaves a trap of ring 3 by dune_ring3_leave().
 *
 * For page faults (DUNE_VECTOR_PF) dune_cr2() is the address. A fault of the process's
 * own mappings (no mapping at an address, SIGBUS of a file) is not a page
 * fault of the guest: it becomes the signal at once.
 *
 * Returns 0 or -EINVAL. All threads share one table of handlers.
 */
int dune_trap_set(unsigned int vector, dune_trap_fn fn, unsigned int flags);

/*
 * Does as if there were no handler: sends a signal, whose handler runs after the trap's
 * handler has returned. This function returns: the caller must return after it. To be
 * called in a trap handler only.
 */
void dune_trap_default(struct dune_tf *tf);

/* Returns the address of the last page fault. Call it first: the next fault changes it. */
static inline uint64_t dune_cr2(void)
{
	uint64_t v;

	__asm__ volatile("mov %%cr2, %0" : "=r" (v));
	return v;
}

/* Turns interrupts off. Returns the flags as they were, for dune_irq_restore(). */
static inline uint64_t dune_irq_save(void)
{
	uint64_t flags;

	__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; popq %0; lea 128(%%rsp), %%rsp; cli"
			 : "=r" (flags) : : "memory");
	return flags;
}

/* Turns interrupts on if they were before dune_irq_save(), which returned @flags. */
static inline void dune_irq_restore(uint64_t flags)
{
	if (flags & 0x200)
		__asm__ volatile("sti" : : : "memory");
}

/* Turns interrupts on. Handlers of signals that waited have run when this returns. */
static inline void dune_irq_enable(void)
{
	/* STI lets one more instruction come first. */
	__asm__ volatile("sti; nop" : : : "memory");
}

/* ---- ring 3 ----------------------------------------------------------- */

/*
 * Ring 3 alone is not a sandbox. It is one when
 *  - it reaches no memory of ring 0: see super_size of struct dune_config.
 *    Without a supervisor range it can write page tables, IDT and handlers;
 *  - its system calls are checked. dune_syscall_pass(), the default, carries
 *    out any call with any pointer, as Linux would for the whole process: the
 *    kernel does not know rings, and write(1, secret, 16) or mprotect() reach
 *    ring 0's memory. Deny by default, and carry out the calls that you
 *    allow by dune_syscall_forward(). Copy each structure that a pointer leads
 *    to before you check it, and pass on the copy;
 *  - handlers rely on nothing that ring 3 sets. The FPU's registers, MXCSR and
 *    the FS base are common to both rings, and in a handler they have ring 3's
 *    values: no errno, no TLS, no stack protector there.
 * examples/ring3.c is such a monitor.
 *
 * Signals. Handlers belong to ring 0: even when ring 3 is interrupted they run
 * in ring 0, on the stack on which dune_ring3() was called (or the alternate
 * one), with ring 0's FS base and a fresh FPU. The frame shows ring 3's
 * registers; when the handler returns, ring 3 continues with the registers that
 * the handler left in the frame. A handler may call dune_ring3_leave(). The mask
 * of signals then stays as it is in the handler, as after longjmp(), so install
 * the handler with SA_NODEFER, or use siglongjmp(). In ring 3 rt_sigaction,
 * sigaltstack and rt_sigreturn return -EPERM. A runtime whose ring 3 is the
 * program and has handlers of its own asks for that by DUNE_ENTER_RING3_SIGNALS.
 */

/*
 * The handler of ring 3's system calls. It runs in ring 0 with interrupts off, on
 * the thread's ring-0 stack. tf->rax is the number; set it to the result. The FPU
 * rule is that of traps without DUNE_TRAP_FPU (compile with -mgeneral-regs-only).
 */
typedef void (*dune_syscall_fn)(struct dune_tf *tf);

/* Installs @fn, or with NULL the default, dune_syscall_pass(). All threads share one handler. */
void dune_syscall_set(dune_syscall_fn fn);

/**
 * dune_syscall_pass() - carry out the frame's system call for the program
 * @tf:		the frame that the handler of system calls got
 *
 * Does what Linux would have done, and stores the result in the frame. Libdune
 * itself carries out the calls that concern the frame (signals, fork,
 * arch_prctl, ...), and all others by dune_syscall_forward().
 */
void dune_syscall_pass(struct dune_tf *tf);

/**
 * dune_syscall_clone3() - the same for a clone3 with a copy of its structure
 * @tf:		the frame that the handler of system calls got
 * @args:	the copy, in memory of the caller
 * @size:	its bytes
 *
 * The values that the caller checked in @args are used, even if other code writes
 * to the program's structure meanwhile.
 */
void dune_syscall_clone3(struct dune_tf *tf, const void *args, size_t size);

/* Returns whether dune_syscall_pass() carries out this call in the library. */
int dune_syscall_special(uint32_t nr);

/**
 * dune_syscall_forward() - a host system call for the program's system call
 * @nr:		the number of the call
 * @a0:		and @a1 to @a5: its arguments
 *
 * Like dune_hypercall(), but a signal with a handler may interrupt it as it
 * would interrupt the program's own call. To be called in a handler of a system
 * call of ring 3 only.
 *
 * Returns the result or a negative errno number, or DUNE_AGAIN: the program must
 * execute its instruction again when the handler has run. dune_syscall_result()
 * does either.
 */
extern long (*dune_syscall_forward)(long nr, long a0, long a1, long a2,
				    long a3, long a4, long a5);

#define DUNE_AGAIN		(-512L)
#define DUNE_SYSCALL_LENGTH	2	/* bytes of the syscall instruction */

/*
 * Returns whether the last DUNE_AGAIN of dune_syscall_forward() means that, and is not the result
 * of the call (a seccomp filter can choose any). Asked a second time it returns 0.
 */
int dune_is_again(void);

/* dune_syscall_result() of DUNE_AGAIN. */
void dune_syscall_again(struct dune_tf *tf);

/* Stores a result of dune_syscall_forward() in the frame. */
static inline void dune_syscall_result(struct dune_tf *tf, long result)
{
	if (__builtin_expect(result == DUNE_AGAIN, 0))
		dune_syscall_again(tf);
	else
		tf->rax = (uint64_t)result;
}

/**
 * dune_ring3() - run code in ring 3
 * @tf:		the registers of ring 3; cs, ss, vector and error are ignored,
 *		and of rflags only the bits that ring 3 may choose are taken
 *
 * Ring 3 runs until a handler (of a system call or trap of ring 3) calls
 * dune_ring3_leave(value); then this call returns value. Calls cannot be nested:
 * a handler that ring 3 has caused to run cannot call dune_ring3(). Ring 3 starts
 * with ring 0's FS base and FPU registers; ring 3 has a GS base of its own (0 at first).
 * When this returns, FS base, MXCSR and the x87 control word are as before the call.
 *
 * Returns the value of dune_ring3_leave(), -EFAULT if tf->rip is not a user address,
 * or -EPERM outside the guest.
 */
long dune_ring3(const struct dune_tf *tf);

/* Ends ring 3: dune_ring3() returns @value. In a handler of ring 3 only. */
void dune_ring3_leave(long value) __attribute__((noreturn));

/* ---- system calls of the host ----------------------------------------- */

/*
 * Makes a system call straight from ring 0. Nothing is checked or emulated, so it is
 * not for clone, fork, rt_sigaction, rt_sigreturn, sigaltstack or arch_prctl: for
 * these use the `syscall` instruction, as libc does. Returns the result or a
 * negative errno number. May block. Ring 0.
 *
 * This and dune_syscall_forward() are pointers because the hypercall instruction
 * is another one on Intel's processors than on AMD's. dune_enter() sets them.
 */
extern long (*dune_hypercall)(long nr, long a0, long a1, long a2, long a3,
			      long a4, long a5);

/**
 * dune_copy() - copy bytes from or to memory that may not be mapped
 * @dst:	to
 * @src:	from
 * @n:		bytes
 *
 * This does not know rings: check pointers of ring 3 with dune_user_ok() first.
 * Ring 0.
 *
 * Returns 0, or -EFAULT if either side could not be reached; a part may have been
 * copied already.
 */
long dune_copy(void *dst, const void *src, size_t n);

/*
 * Returns whether [p, p + n) is in user addresses and outside the supervisor range.
 * This does not look at page tables: pages of the range that were given to ring 3
 * still count as inside.
 */
int dune_user_ok(const void *p, size_t n);

/* ---- page tables ------------------------------------------------------ */

/*
 * A page table is named by its root, the address of its top level. All
 * addresses here, including those of the memory that is to be mapped, are
 * addresses of the process. The first page table, made by dune_enter(), maps
 * every user address to itself, with pages of 1 GB (2 MB on processors that have
 * no larger ones), made when first needed. The process's own mappings (mmap,
 * mprotect) below it decide which memory an address has.
 *
 * Only the entries and CR3, which the processor reads, hold guest-physical
 * addresses. On AMD these are the process's addresses, and on Intel they are others:
 * dune_gpa() and dune_va() translate. On Intel, with B physical address bits, a process
 * can use memory in min(2^(B-30), 65536) - 1 different aligned gigabytes (63 with 36
 * bits, 65535 with 46 or more). Each gigabyte counts that the process accesses or names
 * in a call here, and none is ever given back. When they are used up, calls here fail
 * with -ENOMEM, and a program that accesses memory in another gigabyte ends with a
 * message, by SIGBUS.
 *
 * An entry holds for instructions of threads in Dune mode on this page table
 * only:
 *  - The kernel knows only the process's own mappings. System calls neither
 *    obey rights given here nor set A and D: read(fd, heap) into a page made
 *    read-only here succeeds, without a fault, and the page stays clean. Make
 *    the page dirty first (a write of one byte to each page), or note the pages
 *    that calls wrote. The same holds for threads outside the guest, other
 *    processes that share the memory, and devices.
 *  - Rights belong to addresses, not to mappings: they survive munmap(), and
 *    a mapping that mmap() puts there later has them from the start. Give them
 *    back (dune_pt_protect() with DUNE_PT_RWX) before or after unmapping.
 *
 * Calls split large pages where they must. Tables are never freed before their
 * root is, so entries may be read without a lock. Change them with an atomic
 * instruction: the processor sets A and D on its own.
 *
 * Calls flush the calling thread's TLB. Entries of the root under other PCIDs of
 * this thread are flushed when these PCIDs are loaded next. Other threads must
 * flush their TLBs themselves, under each PCID that they use; dune_pt_load() with
 * DUNE_PT_KEEP is no such flush. A program that changes an entry without a call
 * flushes it itself, under each PCID.
 *
 * Errors: -EINVAL (not a multiple of 4096, not a user address), -ENOMEM, and
 * -EPERM if the root is NULL (dune_pt_load(): outside the guest). A call that
 * fails has changed nothing, and has kept no memory, except dune_pt_load(), which with -ENOMEM
 * may keep memory that its next call needs.
 *
 * Where the first access to a gigabyte needs a page for its page table and the
 * arena has none, the program ends with a message, by SIGBUS.
 */
typedef uint64_t dune_pte;

#define DUNE_PTE_P	(1ULL << 0)	/* present */
#define DUNE_PTE_W	(1ULL << 1)	/* writable */
#define DUNE_PTE_U	(1ULL << 2)	/* reachable from ring 3 */
#define DUNE_PTE_A	(1ULL << 5)	/* accessed; set by the processor */
#define DUNE_PTE_D	(1ULL << 6)	/* dirty; set by the processor */
#define DUNE_PTE_PS	(1ULL << 7)	/* a large page (not in 4 KB entries) */
#define DUNE_PTE_USER1	(1ULL << 9)	/* free for the program */
#define DUNE_PTE_USER2	(1ULL << 10)
#define DUNE_PTE_USER3	(1ULL << 11)
#define DUNE_PTE_NX	(1ULL << 63)	/* no execution */
#define DUNE_PTE_ADDR	0x000ffffffffff000ULL

#define DUNE_PT_RWX	(DUNE_PTE_P | DUNE_PTE_W | DUNE_PTE_U)
#define DUNE_PT_RW	(DUNE_PT_RWX | DUNE_PTE_NX)
#define DUNE_PT_RX	(DUNE_PTE_P | DUNE_PTE_U)
#define DUNE_PT_RO	(DUNE_PT_RX | DUNE_PTE_NX)
/* rights that dune_pt_protect() sets; all other bits are kept */
#define DUNE_PT_RIGHTS	(DUNE_PTE_P | DUNE_PTE_W | DUNE_PTE_U | DUNE_PTE_NX)

/* Returns the root that the calling thread runs on, or NULL outside the guest. */
dune_pte *dune_pt_root(void);

/*
 * Returns the guest-physical address of an address of the process, or all ones if none
 * is left for it.
 */
uint64_t dune_gpa(uint64_t va);

/*
 * Returns the address of the process that has a guest-physical address, or all ones if
 * none has it.
 */
uint64_t dune_va(uint64_t gpa);

/**
 * dune_pt_map() - map [va, va + len) to the memory at [memory, memory + len)
 * @root:	the page table
 * @va:		start, a multiple of 4096
 * @len:	bytes, a multiple of 4096
 * @memory:	the address in the process of the memory, a multiple of 4096
 * @rights:	DUNE_PT_R*, or'ed with any DUNE_PTE_USER*
 *
 * Uses pages of 1 GB and 2 MB where @va, @memory and @len allow it and the range was
 * not split further before, else of 4 KB.
 *
 * Returns 0, -EINVAL, -ENOMEM or -EPERM (see above). The calls below have the same
 * arguments and results.
 */
int dune_pt_map(dune_pte *root, uint64_t va, uint64_t len, uint64_t memory,
		uint64_t rights);

/* Makes accesses fault with a page fault (error code bit 0 clear). */
int dune_pt_unmap(dune_pte *root, uint64_t va, uint64_t len);

/*
 * Changes rights. Where @rights has P, pages that were unmapped are mapped again
 * to their old address. One page of 4 KB that is already split takes a short path
 * without the lock.
 */
int dune_pt_protect(dune_pte *root, uint64_t va, uint64_t len, uint64_t rights);

/* Splits large pages until none is larger than @size (4096 or 2 MB) in [va, va + len). */
int dune_pt_split(dune_pte *root, uint64_t va, uint64_t len, uint64_t size);

/*
 * Calls @fn for every leaf entry of [va, va + len), large or small, present or not, in
 * order. Stops when @fn returns another value than 0, and returns that. @fn
 * may change the entry (flush it then). The lock is not held. If this returns -ENOMEM,
 * @fn was called for all entries before the one that could not be made.
 */
typedef int (*dune_pt_fn)(dune_pte *entry, uint64_t va, uint64_t size,
			  void *arg);
int dune_pt_walk(dune_pte *root, uint64_t va, uint64_t len, dune_pt_fn fn,
		 void *arg);

/*
 * Returns the leaf entry of @va, which is made if no call or access has needed it before,
 * and stores the number of bytes that it maps in @size unless that is NULL. Returns NULL
 * if @root is NULL, if @va is not a user address, and where other calls fail with
 * -ENOMEM.
 */
dune_pte *dune_pt_entry(dune_pte *root, uint64_t va, uint64_t *size);

/* Clears A and/or D (@bits) of an entry. Returns which of them were set. Does not flush. */
static inline uint64_t dune_pte_clear(dune_pte *entry, uint64_t bits)
{
	return __atomic_fetch_and(entry, ~bits, __ATOMIC_SEQ_CST) & bits;
}

/*
 * Returns a copy of all tables, but not of the memory that they map. Returns NULL
 * without memory, or if @root is NULL.
 */
dune_pte *dune_pt_clone(dune_pte *root);

/*
 * Frees a cloned root and its tables. The caller makes sure that no other thread runs on
 * @root or passes it to a call. Returns 0, -EBUSY if the calling thread runs on @root or
 * @root is the first page table, or -EPERM if @root is NULL.
 */
int dune_pt_free(dune_pte *root);

/*
 * Makes the calling thread run on another root. @pcid is 0 or, if the processor has PCIDs,
 * any number up to 4095; DUNE_PT_KEEP may be or'ed in.
 *
 * Entries of other PCIDs stay in the TLB. The PCID's own entries are flushed unless @pcid
 * has DUNE_PT_KEEP, the root is the one that the PCID was last loaded with, and this
 * thread has changed that root only under this PCID since. Changes by other threads may
 * go unnoticed: after one, load the root without DUNE_PT_KEEP, or call dune_tlb_pcid().
 *
 * For a thread that uses PCIDs dune_pt_protect() of one page costs some 40 instructions
 * more. The thread's first call with a PCID other than 0 must not be in a handler that may
 * have interrupted dune_pt_protect(): the page's old rights could stay under that PCID.
 *
 * Returns 0, -EINVAL if @root is NULL or not aligned or @pcid has other bits, -EOPNOTSUPP
 * if @pcid is not 0 or has DUNE_PT_KEEP and the processor has no PCIDs, or -ENOMEM or
 * -EPERM (see above).
 */
#define DUNE_PT_KEEP	(1U << 31)
int dune_pt_load(dune_pte *root, unsigned int pcid);

/* ---- TLB of the calling thread, under the PCID that is loaded ------------- */

/* Flushes the entry of the page at @va. Does nothing outside the guest. */
void dune_tlb_page(uint64_t va);
/* Flushes all entries. Does nothing outside the guest. */
void dune_tlb_all(void);
/*
 * Flushes all entries of @pcid. Returns 0, -EPERM outside the guest, -EINVAL if @pcid is
 * above 4095, or -EOPNOTSUPP if the processor lacks PCIDs or INVPCID.
 */
int dune_tlb_pcid(unsigned int pcid);

/* ---- pages ------------------------------------------------------------- */

/*
 * Returns @count pages of 4 KB in one piece from the arena, zeroed, for page tables and
 * other data of ring 0. Returns NULL if none are left. Pages that were freed are reused
 * only for the same @count.
 */
void *dune_page_alloc(unsigned int count);

/*
 * Gives back the pages of one dune_page_alloc(), with its result and its @count. NULL or 0
 * does nothing.
 */
void dune_page_free(void *page, unsigned int count);

/* ---- counters ----------------------------------------------------------- */

/**
 * struct dune_stats - counters of this process's vCPUs and of libdune
 * @counters:	sums of the kernel's counters (enum dune_counter in
 *		<linux/dune.h>) over the process's threads
 * @signals:	handlers run
 * @forks:	fork, vfork, clone that succeeded
 * @arena_bytes: bytes taken from the arena, and not given back
 * @table_bytes: of these, page tables
 * @reserved:	zero
 */
struct dune_stats {
	uint64_t counters[16];
	uint64_t signals;
	uint64_t forks;
	uint64_t arena_bytes;
	uint64_t table_bytes;
	uint64_t reserved[4];
};

/* Fills @out. Before dune_enter() all is zero. */
void dune_stats(struct dune_stats *out);

#ifdef __cplusplus
}
#endif

#endif /* DUNE_H */
