/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Numbers that C and assembly share: the layout of a thread's block, of the
 * frame, and of the segments. thread.h and process.h check them against the structures.
 *
 * A thread's block is 64 KB, aligned to 64 KB (struct dune_thread):
 *
 *	0x0000	the members that are used all the time, with TSS and GDT
 *	0x0400	IST stack for exceptions, three levels of 0x400
 *	0x1000	actions of signals, for some children
 *	0x1858	stack of the host half, if there is one
 *	0x7a00	the members that are used less often
 *	0x8000	ring-0 stack of the guest half, 32 KB, in a runtime without the lowest page
 *
 * So a thread that does little accesses only two pages. The guest half finds its block
 * by GS, the host half by masking RSP.
 */
#ifndef LIBDUNE_LAYOUT_H
#define LIBDUNE_LAYOUT_H

#define BLOCK_SIZE		0x10000
#define IST_BOTTOM		0x400
#define IST1_TOP		0x1000
#define IST1_STEP		0x400
/*
 * The bit of T_IST1 that shows that a step is left: it is set in the offsets 0xc00 and
 * 0x800, and clear in 0x400, the third step.
 */
#define IST1_LEFT_BIT		11
/* The stack for double faults is a part of IST1's: after a double fault nothing returns. */
#define IST2_TOP		0x800
#define HOST_STACK_TOP		0x7a00
#define RING0_STACK_BOTTOM	0x8000
/* The lowest bytes of the stack that a runtime never has (private/pages.c). */
#define RING0_STACK_GUARD	0x1000
#define RING0_STACK_TOP		0x10000

/* struct dune_thread */
#define T_SELF			0
#define T_RING0_TOP		8
#define T_USER_RSP		16
#define T_SCRATCH		24
#define T_NSIG			32
#define T_TSS			36
#define T_IST1			(T_TSS + 36)
#define T_AGAIN			140
#define T_LEAVE_RSP		144
#define T_RUN			312
#define T_REGS			0x7b38

/* struct dune_tf */
#define TF_R11			48
#define TF_R10			56
#define TF_R9			64
#define TF_R8			72
#define TF_RAX			80
#define TF_RCX			88
#define TF_RDX			96
#define TF_RSI			104
#define TF_RDI			112
#define TF_VECTOR		120
#define TF_RIP			136
#define TF_CS			144
#define TF_RFLAGS		152
#define TF_RSP			160
#define TF_SIZE			176

/*
 * The frame on an IST stack: the processor's, from the error code on, or from RIP on; a
 * stub's, which are the vector and the missing error code; and two registers.
 */
#define IST_RSI			0
#define IST_RDI			8
#define IST_VECTOR		16
#define IST_ERROR		24
#define IST_RIP			32
#define IST_CS			40
#define IST_RFLAGS		48
#define IST_RSP			56
#define IST_SS			64
#define IST_IRET_SIZE		40	/* the bytes from RIP on, which IRET loads */

/* Bytes below RSP that a function may use without moving RSP (System V ABI, 3.2.2). */
#define RED_ZONE		128

/* struct dune_process */
#define P_SMAP			16

/* struct dune_run, whose first member is struct dune_regs */
#define RUN_RBX			24
#define RUN_RSP			32
#define RUN_RBP			40
#define RUN_R12			96
#define RUN_R13			104
#define RUN_R14			112
#define RUN_R15			120
#define RUN_RIP			128
#define RUN_RFLAGS		136
#define RUN_AGAIN		560	/* of struct dune_signal in it */

/* Selectors: the same as Linux uses, since programs can see them. */
#define KERNEL_CS		0x10
#define KERNEL_SS		0x18
#define USER_CS			0x33
#define USER_SS			0x2b
#define TSS_SEL			0x40
#define CPU_SEL			0x7b
#define SEG_CPU			0x0040f50000000000	/* the descriptor, without its limit */

/* Vectors (APM vol. 2, 8.2) */
#define VEC_DE			0	/* division */
#define VEC_DB			1
#define VEC_NMI			2
#define VEC_BP			3
#define VEC_OF			4
#define VEC_UD			6
#define VEC_DF			8
#define VEC_NP			11
#define VEC_SS			12
#define VEC_PF			14
#define VEC_MF			16	/* x87 */
#define VEC_AC			17	/* alignment */
#define VEC_MC			18
#define VEC_XM			19	/* SSE */
#define VEC_SIGNAL		32
#define VEC_SYSCALL		256
#define VEC_GATES		33
/* No vector: a page fault of the second level, which has a handler of its own (guest/entry.S). */
#define VEC_NESTED		33
#define VEC_HANDLERS		34

/* The stubs of the gates are in one aligned piece (guest/entry.S). */
#define STUB_SIZE		16
#define STUBS_ALIGN		1024

/* Bits of #PF's error code */
#define PF_PRESENT		1	/* the page is present */
#define PF_USER			4	/* the access was ring 3's */
#define PF_INSTR		16	/* it was a fetch of an instruction */
#define PF_NESTED		0x4000	/* the second level did not permit it: DUNE_PF_NESTED */

/*
 * The exceptions with an error code (APM vol. 2, 8.4): #DF, #TS, #NP, #SS, #GP, #PF,
 * #AC, #CP, #VC and #SX.
 */
#define VECTORS_WITH_ERROR	(1 << 8 | 1 << 10 | 1 << 11 | 1 << 12 | 1 << 13 | \
				 1 << 14 | 1 << 17 | 1 << 21 | 1 << 29 | 1 << 30)

/*
 * Ring 0 runs with IOPL 1, ring 3 with IOPL 0, which it cannot change: so the
 * entry of SYSCALL, which sees the flags in R11, knows which ring called.
 */
#define RFLAGS_FIXED		0x2
#define RFLAGS_TF		0x100
#define RFLAGS_IF		0x200
#define RFLAGS_DF		0x400
#define RFLAGS_IOPL1		0x1000
#define RFLAGS_IOPL		0x3000
#define RFLAGS_NT		0x4000
#define RFLAGS_RF		0x10000
#define RFLAGS_VM		0x20000
#define RFLAGS_AC		0x40000
#define IOPL_BIT		12
/* The flags that SYSCALL clears. IOPL stays: it tells the rings apart. */
#define SFMASK			(RFLAGS_TF | RFLAGS_IF | RFLAGS_DF | RFLAGS_NT | \
				 RFLAGS_RF | RFLAGS_AC)
/* Ring 0's flags after an entry from ring 3. */
#define RFLAGS_RING0		(RFLAGS_FIXED | RFLAGS_IOPL1)
/* SYSRET loads these from R11; a frame with one of them leaves by IRET. */
#define RFLAGS_NO_SYSRET	(RFLAGS_TF | RFLAGS_IOPL | RFLAGS_NT | \
				 RFLAGS_RF | RFLAGS_VM)

/* Flags that ring 3 may choose, and that a signal frame restores. */
#define RFLAGS_STATUS		0x8d5	/* CF, PF, AF, ZF, SF, OF */
#define RFLAGS_USER		(RFLAGS_STATUS | RFLAGS_TF | RFLAGS_DF | RFLAGS_RF | \
				 RFLAGS_AC)

/* All numbers of the system call table are below this. */
#define SYSCALL_MAX		512

/* VMMCALL and VMCALL have this many bytes. */
#define HYPERCALL_LENGTH	3

#define HOSTCALL_NOW		0x600000000	/* DUNE_HOSTCALL_NOW */
#define MAKE_CHILD		0x400000000	/* DUNE_MAKE_CHILD */
#define MAKE_SHARED_CHILD	0x500000000	/* DUNE_MAKE_SHARED_CHILD */

#define DUNE_AGAIN_RESULT	(-512)
#define EFAULT_RESULT		(-14)
#define EINTR_RESULT		(-4)

#endif /* LIBDUNE_LAYOUT_H */
