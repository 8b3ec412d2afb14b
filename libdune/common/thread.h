/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The block of a thread in Dune mode: all of the library's state of this thread, with its
 * stacks. layout.h has a map of it.
 *
 * A thread's block is used by its guest half and, if it has one, by its host half
 * and the host half's signal handler. They never run at the same time: the guest
 * half does not run while the host half does, and the handler returns before either
 * continues. Without a host half no signal interrupts ring 0, and a vfork child that
 * uses the block keeps its parent waiting. So the block needs no lock, only compiler
 * barriers.
 */
#ifndef LIBDUNE_THREAD_H
#define LIBDUNE_THREAD_H

#include <linux/dune.h>
#include "address.h"
#include "dune.h"
#include "layout.h"
#include "linux.h"
#include "sigaction.h"

/*
 * A signal on its way to the program's handler: host/signal.c or, without a host half,
 * alone/signal.c puts it into the queue, and guest/signal.c delivers it. While one is
 * queued, the kernel blocks all signals that have handlers. So the queue holds that one,
 * any signals to which another thread gives a handler in the meantime, and a fault
 * that the guest half puts first. When only one place is left, all signals are
 * blocked. (Without a host half all are blocked from the first one on.)
 */
struct dune_sigentry {
	struct ksiginfo info;
	struct ksigaction action;	/* as it was when the signal came */
	u64 oldmask;			/* to restore when the handler returns */
	u64 trapno, error, cr2;		/* for the ucontext of a fault */
};

#define DUNE_SIGQUEUE	4

/*
 * dune_thread.last_table: its key begins at this bit. NO_LAST_TABLE means that the
 * thread remembers no table; its key is -1.
 */
#define LAST_TABLE_SHIFT	35
#define NO_LAST_TABLE		(~0ULL)

struct dune_tss {
	u32 reserved0;
	u64 rsp[3];
	u64 reserved1;
	u64 ist[7];
	u64 reserved2;
	u16 reserved3;
	u16 iomap;
} __packed;

/* Memory for copies for the kernel (dune_copies.h), without a host half. */
struct dune_copies {
	u8 *window, *scratch;		/* where ring 0 has them */
	u64 window_shown, scratch_shown; /* where the process has them */
	u32 window_used, scratch_used;
	u64 start_mark;			/* of what is in use when the program begins, for ever */
};

struct dune_thread {
	struct dune_thread *self;
	u64 ring0_top;
	u64 user_rsp;			/* scratch of the entry of SYSCALL */
	u64 scratch;
	u32 nsig;			/* entries of queue[] in use */
	struct dune_tss tss;
	u32 call_again;			/* the last DUNE_AGAIN is no result: dune_is_again() */
	u64 leave_rsp;			/* dune_ring3()'s, for dune_ring3_leave() */
	u64 gdt[16];

	u64 ring0_fs;			/* ring 0's FS base while ring 3 runs */
	dune_pte *root;			/* the page table that CR3 leads to */
	/*
	 * memory/pgtable.c: the last-level table of the first root that was used last.
	 * Bits 34:0 are the number of its page; the bits above are the key, the number
	 * of the 2 MB that it maps. It is one word, so that a handler that interrupts
	 * dune_pt_protect() changes both parts or neither.
	 */
	u64 last_table;
	/*
	 * memory/tlb.c: for each PCID, the generation that its entries are of. NULL while the
	 * thread has used no PCID.
	 */
	u64 *pcid_generations;

	struct dune_run *run;		/* NULL while there is no vCPU */
	void *run_place;		/* pages of the arena that *run covers */
	int vcpu;			/* its file descriptor; next_vcpu() reads that of others */
	/*
	 * Equal in threads that share a table of descriptors: NULL, but in a vfork child
	 * without CLONE_FILES its own block. unshare() is not noticed.
	 */
	const struct dune_thread *files;
	u32 fault_repeats;		/* how often the same fault came without progress */
	u32 own_fault;			/* alone/fault.c: a fault of ring 0 is being handled */
	u64 fault_rip, fault_address, fault_calls;
	u64 migrations;			/* counter when the GDT's CPU was right */

	struct dune_sighand *sighand;
	u64 mask;			/* while nsig is not 0: what the guest half will set */
	u64 temp_mask;			/* of sigsuspend() and similar calls */
	u32 temp_mask_on;
	u32 silent_probe;		/* host/fault.c: a probe runs whose fault sends no signal */
	u64 held_set;			/* SIGSEGV and SIGBUS that came during such a probe */
	u64 frames, frames_end;		/* without a host half: the kernel's stack for signals */
	struct dune_copies copies;	/* without a host half */
	struct kstack altstack;
	struct dune_thread *next;	/* dune_process.threads */

	u8 ist[IST1_TOP - IST_BOTTOM] __aligned(IST_BOTTOM);

	struct dune_sighand own_sighand; /* of a child that shares memory only */
	u8 host_stack[HOST_STACK_TOP - IST1_TOP - sizeof(struct dune_sighand)];

	/* with a host half, how a new vCPU starts: dune_enter()'s, or a child's (host/process.c) */
	struct dune_state state;
	struct dune_regs regs;
	struct dune_tf *child_tf;	/* gets rax = 0 and child_rsp */
	u64 child_rsp;
	u64 child_flags;		/* of clone() */
	struct dune_sigentry queue[DUNE_SIGQUEUE];
	struct ksiginfo held[2];	/* of held_set */

	u8 ring0_stack[RING0_STACK_TOP - RING0_STACK_BOTTOM]
		__aligned(0x1000);
};

/* The numbers of layout.h are the offsets of the structures. */
CHECK_OFFSET(struct dune_thread, self, T_SELF);
CHECK_OFFSET(struct dune_thread, ring0_top, T_RING0_TOP);
CHECK_OFFSET(struct dune_thread, user_rsp, T_USER_RSP);
CHECK_OFFSET(struct dune_thread, scratch, T_SCRATCH);
CHECK_OFFSET(struct dune_thread, nsig, T_NSIG);
CHECK_OFFSET(struct dune_thread, tss, T_TSS);
CHECK_OFFSET(struct dune_thread, call_again, T_AGAIN);
CHECK_OFFSET(struct dune_thread, run, T_RUN);
CHECK_OFFSET(struct dune_thread, tss.ist[0], T_IST1);
CHECK_OFFSET(struct dune_thread, leave_rsp, T_LEAVE_RSP);
CHECK_OFFSET(struct dune_thread, ist, IST_BOTTOM);
CHECK_OFFSET(struct dune_thread, own_sighand, IST1_TOP);
CHECK_OFFSET(struct dune_thread, state, HOST_STACK_TOP);
CHECK_OFFSET(struct dune_thread, regs, T_REGS);
CHECK_OFFSET(struct dune_thread, ring0_stack, RING0_STACK_BOTTOM);
_Static_assert(sizeof(struct dune_thread) == BLOCK_SIZE, "a block has another size");

CHECK_OFFSET(struct dune_tf, r11, TF_R11);
CHECK_OFFSET(struct dune_tf, r10, TF_R10);
CHECK_OFFSET(struct dune_tf, r9, TF_R9);
CHECK_OFFSET(struct dune_tf, r8, TF_R8);
CHECK_OFFSET(struct dune_tf, rax, TF_RAX);
CHECK_OFFSET(struct dune_tf, rcx, TF_RCX);
CHECK_OFFSET(struct dune_tf, rdx, TF_RDX);
CHECK_OFFSET(struct dune_tf, rsi, TF_RSI);
CHECK_OFFSET(struct dune_tf, rdi, TF_RDI);
CHECK_OFFSET(struct dune_tf, vector, TF_VECTOR);
CHECK_OFFSET(struct dune_tf, rip, TF_RIP);
CHECK_OFFSET(struct dune_tf, cs, TF_CS);
CHECK_OFFSET(struct dune_tf, rflags, TF_RFLAGS);
CHECK_OFFSET(struct dune_tf, rsp, TF_RSP);
_Static_assert(sizeof(struct dune_tf) == TF_SIZE && TF_SIZE % 16 == 0,
	       "a frame has another size, or does not keep the stack aligned");

CHECK_OFFSET(struct dune_run, regs, 0);
CHECK_OFFSET(struct dune_regs, rbx, RUN_RBX);
CHECK_OFFSET(struct dune_regs, rsp, RUN_RSP);
CHECK_OFFSET(struct dune_regs, rbp, RUN_RBP);
CHECK_OFFSET(struct dune_regs, r12, RUN_R12);
CHECK_OFFSET(struct dune_regs, r13, RUN_R13);
CHECK_OFFSET(struct dune_regs, r14, RUN_R14);
CHECK_OFFSET(struct dune_regs, r15, RUN_R15);
CHECK_OFFSET(struct dune_regs, rip, RUN_RIP);
CHECK_OFFSET(struct dune_regs, rflags, RUN_RFLAGS);
CHECK_OFFSET(struct dune_run, signal.again, RUN_AGAIN);

_Static_assert(PF_NESTED == DUNE_PF_NESTED, "PF_NESTED is not DUNE_PF_NESTED");
_Static_assert(HOSTCALL_NOW == DUNE_HOSTCALL_NOW, "HOSTCALL_NOW is not DUNE_HOSTCALL_NOW");
_Static_assert(MAKE_CHILD == DUNE_MAKE_CHILD, "MAKE_CHILD is not DUNE_MAKE_CHILD");
_Static_assert(MAKE_SHARED_CHILD == DUNE_MAKE_SHARED_CHILD,
	       "MAKE_SHARED_CHILD is not DUNE_MAKE_SHARED_CHILD");
_Static_assert(-EFAULT == EFAULT_RESULT, "EFAULT_RESULT is not -EFAULT");
_Static_assert(-EINTR == EINTR_RESULT, "EINTR_RESULT is not -EINTR");
_Static_assert((DUNE_AGAIN) == (DUNE_AGAIN_RESULT), "DUNE_AGAIN_RESULT is not DUNE_AGAIN");

/* Sets the limit of the segment whose limit is CPU and node; __getcpu() of the vDSO reads it. */
static inline void dune_gdt_set_limit(struct dune_thread *t, u64 limit)
{
	t->gdt[CPU_SEL / 8] = SEG_CPU | (limit & 0xffff) | (limit & 0xf0000) << 32;
}

/* Returns the block of the calling thread, which is in the guest. */
ALWAYS_INLINE struct dune_thread *dune_self(void)
{
	struct dune_thread *t;

	__asm__ ("movq %%gs:0, %0" : "=r" (t));
	return t;
}

/* A member of the calling thread's block, in the guest, by one access relative to GS. */
#define this_thread(member)						\
	(((const __seg_gs struct dune_thread *)0)->member)

#endif /* LIBDUNE_THREAD_H */
