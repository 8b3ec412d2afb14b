/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * <dune.h>: the interface of libdune.
 *
 * dune_enter() moves the calling thread into guest mode: it goes on in ring 0
 * of its own virtual machine, in the same address space, on the same stack,
 * with the same files, and all of libc works as before. From then on it may
 * use what ring 0 gives: exceptions, page tables, the TLB, and ring 3 for
 * code it does not trust.
 *
 * Conventions. Functions that can fail return 0 or a negative errno number
 * (-ENOMEM); none sets errno. Lengths and sizes are bytes, addresses virtual.
 * "Ring 0" as a context means: only after dune_enter() returned 0, on that
 * thread. All functions may be called from any thread in guest mode, with
 * interrupts on or off, and from trap handlers; each takes the locks it needs
 * itself and none blocks, unless it says otherwise.
 *
 * Before dune_enter(), dune_trap_set() and dune_syscall_set() work; what needs
 * the guest fails: with -EPERM, with NULL where it returns a pointer, or by
 * doing nothing (dune_tlb_page(), dune_tlb_all()). Two groups do not check, and
 * end in a signal there, as in a thread outside the guest: what is an
 * instruction of ring 0 by itself (dune_cr2(), dune_irq_*(), dune_hypercall(),
 * dune_syscall_forward()), and dune_pt_protect() on a root that exists.
 *
 * Interrupts of the guest carry one thing only: the process's signals. With
 * RFLAGS.IF clear (in trap handlers, between dune_irq_save() and
 * dune_irq_restore()) handlers of signals wait. The library uses vector
 * DUNE_SIGNAL_VECTOR for them; it needs the GS base in ring 0 for itself,
 * and RFLAGS.IOPL to tell ring 0 (1) from ring 3 (0).
 *
 * What a program in ring 0 cannot do: use GS, make threads (clone() with
 * CLONE_THREAD gives ENOSYS), or use I/O ports, control and debug registers.
 *
 * A process may have threads that it made before it entered. Those that do not
 * call dune_enter() stay ordinary threads of Linux. More than one may call it:
 * they share page tables, handlers of traps and signals' actions, and each has
 * a TLB of its own, which only its own calls flush.
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
 *		readable and writable, zeroed; NULL: libdune finds its own
 *		(up to 256 MB, of which it uses what it touches)
 * @arena_size:	bytes of @arena, 256 KB or more; 0 with NULL
 * @arena_limit: 0, or more than @arena_size: bytes from @arena on that are
 *		libdune's, within one aligned gigabyte; it maps what is above
 *		@arena_size when it needs it
 * @super_base:	start of a range that ring 3 cannot reach, 1 GB aligned
 * @super_size:	its size, a multiple of 1 GB; 0: ring 3 can reach all, page
 *		tables and handlers of traps, too. Libdune's data and the arena
 *		must be in the range. With base 0 and size 1 << 47 ring 3
 *		reaches nothing but what dune_pt_protect() and dune_pt_map()
 *		give it with DUNE_PTE_U
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
 * CR4.SMEP and CR4.SMAP are set where the processor has them. Ring 0 then
 * executes no memory outside the range, and touches it by dune_copy() alone;
 * anything else there is a page fault.
 */
#define DUNE_ENTER_SMAP		(1U << 0)

/*
 * Handlers of signals are ring 3's: ring 3 installs them itself (by calls of
 * rt_sigaction that the handler of its system calls passes on), and they run
 * there, on its stack. Ring 0 starts with interrupts off; while it turns them
 * on, handlers run in ring 0. Without this flag see "ring 3" below.
 */
#define DUNE_ENTER_RING3_SIGNALS	(1U << 1)

/**
 * dune_enter() - take the calling thread into guest mode
 * @cfg:	NULL for the default, or for what the process was set up with
 *
 * Returns 0 in ring 0 of the guest (also when it is there already), or a
 * negative errno number, still outside: -ENOENT or -ENODEV (no /dev/dune,
 * or guest-physical addresses of too few bits), -EACCES, -ENOMEM, -EINVAL (bad
 * configuration), -EBUSY (the process was set up with another one: by a call
 * that succeeded, or that failed after its configuration was accepted), -EPROTO
 * (a module of another version), -EOPNOTSUPP (under valgrind, which interprets
 * instructions).
 * dune_enter_error() says which it was, in words. Takes a time that does not
 * depend on how much memory the process has mapped.
 */
int dune_enter(const struct dune_config *cfg);

/**
 * dune_enter_error() - why the last dune_enter() failed, in words
 *
 * A text for people that says which member of the configuration is wrong, or
 * what could not be had; NULL if none failed since the last that succeeded. The
 * text is static, and of the last call by any thread.
 */
const char *dune_enter_error(void);

#define DUNE_CS		0x10	/* the code segment of ring 0 */

/* Whether the caller runs in ring 0 of a guest. Callable anywhere. */
static inline int dune_active(void)
{
	uint16_t cs;

	/* Valgrind, which is no processor, has 0 here. */
	__asm__ volatile("mov %%cs, %0" : "=r" (cs));
	return cs == DUNE_CS;
}

/* ---- traps ------------------------------------------------------------ */

/* dune_tf.vector of a system call from ring 3 (or a special one from ring 0) */
#define DUNE_VECTOR_SYSCALL	256
#define DUNE_SIGNAL_VECTOR	32
#define DUNE_VECTORS		256

/**
 * struct dune_tf - all registers of interrupted code; a handler may change any
 * @vector:	exception, or DUNE_VECTOR_SYSCALL
 * @error:	the exception's error code, 0 where it has none
 *
 * @cs & 3 is the ring that was interrupted. For system calls @rax is the
 * number in and the result out, @rcx == @rip is the return address and
 * @r11 == @rflags. The FPU's registers are not here: they are live.
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
 * the handler must be compiled with -mgeneral-regs-only and so must all it
 * calls; then nothing is saved.
 *
 * Instructions, of a page-fault handler that only returns: 65 for a write to a
 * page without DUNE_PTE_W, 205 where DUNE_PTE_P is clear (the library first
 * looks whether the address merely was not used before); with this flag, 140
 * more. So take away W rather than P where the event allows it.
 */
#define DUNE_TRAP_FPU		(1U << 0)

/**
 * dune_trap_set() - handle a vector
 * @vector:	0 to 31, except 2, 8 and 18
 * @fn:		NULL: back to the default
 * @flags:	DUNE_TRAP_*
 *
 * @fn runs in ring 0 with interrupts off: on the interrupted stack, 128 bytes
 * (the red zone) below its top, if ring 0 was interrupted, else on the
 * thread's ring-0 stack (32 KB). It may fault itself. When it returns, the
 * registers in the frame are loaded. It may call dune_trap_default() for what
 * it does not want, and then returns. The default is the signal that Linux
 * would send.
 *
 * A handler may leave a trap of ring 0 by longjmp(), which does not turn
 * interrupts on again: call dune_irq_enable() where it lands, or no signal is
 * ever handled. Registers that DUNE_TRAP_FPU saved are not restored then. A
 * trap of ring 3 it leaves by dune_ring3_leave().
 *
 * For page faults (14) dune_cr2() is the address. A fault of the process's
 * own mappings (no mapping at an address, SIGBUS of a file) is not a page
 * fault of the guest: it becomes the signal at once.
 *
 * Returns 0 or -EINVAL. One table for all threads.
 */
int dune_trap_set(unsigned int vector, dune_trap_fn fn, unsigned int flags);

/*
 * What would have happened without a handler: a signal, whose handler runs
 * when this trap's has returned. It returns itself: return from there. In a
 * handler only.
 */
void dune_trap_default(struct dune_tf *tf);

/* The address of the last page fault. Read it first: the next one changes it. */
static inline uint64_t dune_cr2(void)
{
	uint64_t v;

	__asm__ volatile("mov %%cr2, %0" : "=r" (v));
	return v;
}

static inline uint64_t dune_irq_save(void)
{
	uint64_t flags;

	__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; popq %0; lea 128(%%rsp), %%rsp; cli"
			 : "=r" (flags) : : "memory");
	return flags;
}

static inline void dune_irq_restore(uint64_t flags)
{
	if (flags & 0x200)
		__asm__ volatile("sti" : : : "memory");
}

/* Interrupts on; handlers of signals that waited have run when this returns. */
static inline void dune_irq_enable(void)
{
	/* STI lets one more instruction come first. */
	__asm__ volatile("sti; nop" : : : "memory");
}

/* ---- ring 3 ----------------------------------------------------------- */

/*
 * Ring 3 alone is no sandbox. It is one when
 *  - it reaches no memory of ring 0: see super_size of struct dune_config.
 *    Without a supervisor range it can write page tables, IDT and handlers;
 *  - its system calls are checked. dune_syscall_pass(), the default, carries
 *    out any call with any pointer, as Linux would for the whole process: the
 *    kernel does not know rings, and write(1, secret, 16) or mprotect() reach
 *    ring 0's memory. Deny by default, and carry out what you allow by
 *    dune_syscall_forward(), with copies of what pointers lead to;
 *  - handlers rely on nothing that ring 3 sets. The FPU's registers, MXCSR and
 *    the FS base are common to both rings, and in a handler they are ring 3's:
 *    no errno, no TLS, no stack protector there.
 * examples/ring3.c is all of this on a page.
 *
 * Signals. Handlers belong to ring 0: also when ring 3 is interrupted they run
 * in ring 0, on the stack on which dune_ring3() was called (or the alternate
 * one), with ring 0's FS base and a fresh FPU. The frame shows ring 3's
 * registers, and returning goes back there with what the handler made of them.
 * A handler may call dune_ring3_leave(); the mask of signals then stays what it
 * is in the handler, as after longjmp(), so install it with SA_NODEFER, or use
 * siglongjmp(). Ring 3's rt_sigaction, sigaltstack and rt_sigreturn are -EPERM.
 * A runtime whose ring 3 is the program and has handlers of its own asks for
 * that by DUNE_ENTER_RING3_SIGNALS.
 */

/*
 * System calls of ring 3. Runs in ring 0, interrupts off, on the thread's
 * ring-0 stack. tf->rax is the number; set it to the result. FPU rule: as for
 * traps without DUNE_TRAP_FPU (compile with -mgeneral-regs-only).
 */
typedef void (*dune_syscall_fn)(struct dune_tf *tf);

/* NULL: the default, dune_syscall_pass(). One for all threads. */
void dune_syscall_set(dune_syscall_fn fn);

/**
 * dune_syscall_pass() - carry out the frame's system call for the program
 *
 * Does what Linux would have done, and stores the result in the frame: calls
 * that concern the frame itself (signals, fork, arch_prctl, ...) are done by
 * libdune, all others by dune_syscall_forward().
 */
void dune_syscall_pass(struct dune_tf *tf);

/*
 * The same for a clone3 of which the caller made a copy of the structure: what
 * it checked there is what is used, whoever writes to the program's memory.
 */
void dune_syscall_clone3(struct dune_tf *tf, const void *args, size_t size);

/* Whether dune_syscall_pass() does this call in the library. */
int dune_syscall_special(uint32_t nr);

/**
 * dune_syscall_forward() - a host system call for the program's system call
 *
 * Like dune_hypercall(), but a signal with a handler may interrupt it as it
 * would interrupt the program's own call. Store the result with
 * dune_syscall_result(), which knows the value DUNE_AGAIN: "the program must
 * execute its instruction again when the handler has run". Only in a handler
 * of a system call of ring 3.
 */
extern long (*dune_syscall_forward)(long nr, long a0, long a1, long a2,
				    long a3, long a4, long a5);

#define DUNE_AGAIN	(-512L)

static inline void dune_syscall_result(struct dune_tf *tf, long result)
{
	if (__builtin_expect(result == DUNE_AGAIN, 0))
		tf->rip -= 2;	/* the syscall instruction; rax is the number */
	else
		tf->rax = (uint64_t)result;
}

/**
 * dune_ring3() - run code in ring 3
 * @tf:		its registers; cs, ss, vector and error are ignored, of rflags
 *		only what ring 3 may choose is taken
 *
 * Ring 3 runs until a handler (of a system call or trap of ring 3) calls
 * dune_ring3_leave(value); then this call returns value. Not nested: ring 0
 * code called from ring 3 by a handler cannot enter ring 3 again by this.
 * Returns -EFAULT if tf->rip is not a user address. Ring 3 starts with ring 0's
 * FS base and FPU registers; GS base is ring 3's own (0 at first). When this
 * returns, FS base, MXCSR and the x87 control word are as before the call.
 */
long dune_ring3(const struct dune_tf *tf);
void dune_ring3_leave(long value) __attribute__((noreturn));

/* ---- system calls of the host ----------------------------------------- */

/*
 * A system call straight from ring 0 (the `syscall` instruction does the same
 * and a little more: signals, fork and so on work with it alone). Nothing is
 * checked or emulated: not for clone, fork, rt_sigaction, rt_sigreturn,
 * sigaltstack or arch_prctl. Returns the result or a negative errno number.
 * May block. Ring 0.
 *
 * A pointer, as dune_syscall_forward() is, because the instruction is another
 * one on Intel's processors than on AMD's. dune_enter() sets it.
 */
extern long (*dune_hypercall)(long nr, long a0, long a1, long a2, long a3,
			      long a4, long a5);

/**
 * dune_copy() - copy bytes between places that may not be there
 *
 * Returns 0, or -EFAULT if either side could not be reached, after a part may
 * have been copied. It does not know of rings: check pointers of ring 3 with
 * dune_user_ok() first. Ring 0.
 */
long dune_copy(void *dst, const void *src, size_t n);

/*
 * Whether [p, p + n) is in user addresses and outside the supervisor range. It
 * does not look at page tables: pages of the range that were given to ring 3
 * are still inside.
 */
int dune_user_ok(const void *p, size_t n);

/* ---- page tables ------------------------------------------------------ */

/*
 * A page table is named by its root, the address of its top level. All
 * addresses here, also those of the memory that is to be mapped, are addresses
 * of the process. The first page table, made by dune_enter(), maps every user
 * address to itself, with pages of 1 GB (2 MB on processors that have no larger
 * ones), made when first needed; what is really there is decided by the
 * process's own mappings (mmap, mprotect) underneath.
 *
 * Only what the processor reads, entries and CR3, holds guest-physical
 * addresses. They are the process's addresses where the processor has enough
 * physical address bits (AMD), and others where it has fewer (most of Intel's):
 * dune_gpa() and dune_va() translate. With B bits a process can use memory in
 * 2^(B-30) - 1 different gigabytes (aligned; 63 with 36 bits); each one counts
 * that it touches, or names in a call here, and none is ever given back. When
 * they are used up, calls here fail with -ENOMEM, and a program that touches
 * memory in another gigabyte ends with a message, by SIGBUS.
 *
 * What an entry says holds for instructions of threads in guest mode on this
 * page table, and for nothing else:
 *  - The kernel knows only the process's own mappings. System calls neither
 *    obey rights given here nor set A and D: read(fd, heap) into a page made
 *    read-only here succeeds, without a fault, and the page stays clean. Make
 *    the page dirty first (a write, a byte a page), or note what calls wrote.
 *    The same holds for threads outside the guest, other processes that share
 *    the memory, and devices.
 *  - Rights belong to addresses, not to mappings: they survive munmap(), and
 *    what mmap() puts there later has them from the start. Give them back
 *    (dune_pt_protect() with DUNE_PT_RWX) before or after unmapping.
 *
 * Calls split large
 * pages where they must. Tables are never freed before their root is, so
 * entries may be looked at without a lock; change them with an atomic
 * instruction (the processor sets A and D on its own).
 *
 * Calls flush the calling thread's TLB. What other tags of it hold of the root
 * is flushed when they are loaded next; TLBs of other threads are theirs to
 * flush. Who changes an entry by hand flushes it by hand, in each tag.
 *
 * Errors: -EINVAL (not a multiple of 4096, not a user address), -ENOMEM, and
 * -EPERM outside the guest. A call that fails has changed nothing, and has kept
 * no memory.
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

/* The root that the calling thread runs on. */
dune_pte *dune_pt_root(void);

/*
 * The guest-physical address of an address of the process (all ones: there is
 * none left for it), and back (all ones: that is nobody's).
 */
uint64_t dune_gpa(uint64_t va);
uint64_t dune_va(uint64_t gpa);

/**
 * dune_pt_map() - map [va, va + len) to the memory at [pa, pa + len)
 * @rights:	DUNE_PT_R*, or'ed with any DUNE_PTE_USER*
 *
 * Uses pages of 1 GB and 2 MB where @va, @pa and @len allow and no smaller
 * ones were there before, else of 4 KB.
 */
int dune_pt_map(dune_pte *root, uint64_t va, uint64_t len, uint64_t pa,
		uint64_t rights);

/* Make accesses fault with a page fault (error code bit 0 clear). */
int dune_pt_unmap(dune_pte *root, uint64_t va, uint64_t len);

/*
 * Change rights. Pages unmapped before come back where @rights has P: with
 * their old address. One page of 4 KB that is already split takes a short
 * way without the lock.
 */
int dune_pt_protect(dune_pte *root, uint64_t va, uint64_t len, uint64_t rights);

/* Split large pages below @size (4096 or 2 MB) in [va, va + len). */
int dune_pt_split(dune_pte *root, uint64_t va, uint64_t len, uint64_t size);

/*
 * Call @fn for every leaf entry of [va, va + len), large or small, present or
 * not, in order; stop and return what it returns when that is not 0. @fn may
 * change the entry (then flush). Not under the lock. -ENOMEM: @fn was called
 * for all that comes before.
 */
typedef int (*dune_pt_fn)(dune_pte *entry, uint64_t va, uint64_t size,
			  void *arg);
int dune_pt_walk(dune_pte *root, uint64_t va, uint64_t len, dune_pt_fn fn,
		 void *arg);

/* The leaf entry of an address (NULL: none), and the size of its page. */
dune_pte *dune_pt_entry(dune_pte *root, uint64_t va, uint64_t *size);

/* Clear A and/or D (@bits) of an entry; returns which of them were set. No flush. */
static inline uint64_t dune_pte_clear(dune_pte *entry, uint64_t bits)
{
	return __atomic_fetch_and(entry, ~bits, __ATOMIC_SEQ_CST) & bits;
}

/* A copy of all tables (not of the memory they map); NULL: no memory. */
dune_pte *dune_pt_clone(dune_pte *root);

/* Free a cloned root and its tables. -EBUSY: the calling thread runs on it. */
int dune_pt_free(dune_pte *root);

/*
 * Run on another root. @tag: 0, or where the processor has PCIDs, 1 to 4095:
 * entries of other tags stay in the TLB. The tag's own entries are flushed
 * unless DUNE_PT_KEEP is or'ed in, and the root is the one that the tag was
 * loaded with last and was not changed since but under this tag. A thread that
 * uses tags pays some 40 instructions more for dune_pt_protect() of one page.
 * -EOPNOTSUPP: no tags here. -ENOMEM: as above.
 */
#define DUNE_PT_KEEP	(1U << 31)
int dune_pt_load(dune_pte *root, unsigned int tag);

/* ---- TLB of the calling thread: of the tag that is loaded --------------- */

void dune_tlb_page(uint64_t va);
void dune_tlb_all(void);
int dune_tlb_tag(unsigned int tag);	/* -EOPNOTSUPP without PCID and INVPCID */

/* ---- pages ------------------------------------------------------------- */

/*
 * Pages of 4 KB from the arena, zeroed, for page tables and what else ring 0
 * wants to keep. @count pages in one piece; NULL: none left. They are free
 * for reuse only for the same @count.
 */
void *dune_page_alloc(unsigned int count);
void dune_page_free(void *page, unsigned int count);

/* ---- counters ----------------------------------------------------------- */

/**
 * struct dune_stats - what this process's vCPUs did so far
 *
 * Sums of the kernel's counters (enum dune_counter in <linux/dune.h>) over
 * the process's threads, and what libdune has of its own.
 */
struct dune_stats {
	uint64_t counters[16];
	uint64_t signals;	/* handlers run */
	uint64_t forks;		/* fork, vfork, clone that succeeded */
	uint64_t arena_bytes;	/* taken from the arena, and not given back */
	uint64_t table_bytes;	/* of these, page tables */
	uint64_t reserved[4];
};

void dune_stats(struct dune_stats *out);

#ifdef __cplusplus
}
#endif

#endif /* DUNE_H */
