/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A guest without libdune: one vCPU on the bare interface of the module, with page
 * tables, descriptor tables and a loop small enough to read at once. The tests
 * of the module use this and not libdune, so that a bug in one cannot hide a bug
 * in the other.
 *
 * A guest is a C function of the test itself: the address space is the same.
 */
#ifndef DUNE_TESTS_GUEST_H
#define DUNE_TESTS_GUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/dune.h>

typedef uint64_t u64;
typedef uint32_t u32;
typedef uint16_t u16;
typedef uint8_t u8;

#define GUEST_CS0	0x08
#define GUEST_SS0	0x10
#define GUEST_CS32	0x18	/* SYSRET: below SS and the 64-bit CS */
#define GUEST_SS3	0x23
#define GUEST_CS3	0x2b
#define GUEST_TR	0x30

/* Attributes of a CS with both L and D set: VMRUN refuses it (APM vol. 2, 15.5.1). */
#define CS_LONG_AND_32BIT	0xe9b

/* Values of dune_run.restart: include/linux/errno.h of the kernel, not in its uapi. */
#define ERESTARTSYS		512
#define ERESTARTNOHAND		514
#define ERESTART_RESTARTBLOCK	516

struct guest_tss {
	u32 reserved0;
	u64 rsp[3];
	u64 reserved1;
	u64 ist[7];
	u64 reserved2;
	u16 reserved3;
	u16 iomap;
} __attribute__((packed));

/* The stack after an exception; the order is that of trap.S. */
struct guest_frame {
	u64 r15, r14, r13, r12, r11, r10, r9, r8;
	u64 rdi, rsi, rbp, rbx, rdx, rcx, rax;
	u64 vector, error;
	u64 rip, cs, rflags, rsp, ss;
};

#define GUEST_PDPTS	8
#define GUEST_PDS	16	/* for processors without pages of 1 GB */

/* Everything the guest's processor looks at, in ordinary memory. */
struct guest_memory {
	u64 pml4[512];
	u64 pdpt[GUEST_PDPTS][512];
	u64 pd[GUEST_PDS][512];
	u64 idt[512];			/* one page */
	u64 gdt[16];
	struct guest_tss tss;
	u8 pad[4096 - 128 - sizeof(struct guest_tss)];
	u8 trap_stack[8192];		/* IST 1: every exception */
	u8 stack[65536];
};

enum guest_end {
	GUEST_DONE,	/* the function returned; its value is in guest.value */
	GUEST_TRAP,	/* an exception: guest.frame */
	GUEST_ASK,	/* guest_ask() was called; guest.value is its argument */
	GUEST_EXIT,	/* another exit: guest.run->exit_reason */
	GUEST_ERROR,	/* DUNE_RUN failed: guest.error */
};

struct guest {
	int dev;
	int fd;
	int error;
	struct dune_info info;
	struct dune_run *run;
	struct dune_state state;	/* as guest_open() left it */
	unsigned int pds;		/* of mem->pd, in use */
	struct guest_memory *mem;
	struct guest_frame *frame;
	u64 value;
	unsigned int slow;		/* system calls made here for the guest */
	unsigned int restarts;		/* those that had been interrupted in the kernel */
	unsigned int intrs;		/* DUNE_EXIT_INTR */
	unsigned int faults;		/* DUNE_EXIT_FAULT */
};

/* Make everything; 0 or -errno of the step that failed. */
int guest_try_open(struct guest *g);
/* guest_try_open() with the existing vCPU @fd. */
int guest_adopt(struct guest *g, int fd);
/* guest_try_open(), which bails out on an error. */
void guest_open(struct guest *g);
/*
 * Close the vCPU and the device and unmap the guest's memory; also after a
 * guest_try_open() that failed.
 */
void guest_close(struct guest *g);
/* Make the vCPU only: device, vCPU, run page. 0 or -errno. */
int guest_vcpu(struct guest *g);

/*
 * An interrupt gate to @handler, on the stack of that number in the TSS, or 0: the
 * current one. Code in rings up to @ring may use it by INT.
 */
void guest_set_gate(struct guest *g, unsigned int vector, const void *handler, u64 ist, u64 ring);

/* Registers for a call of fn(arg) in ring @ring, from a fresh state. */
void guest_prepare(struct guest *g, unsigned int ring, u64 (*fn)(void *arg), void *arg);
/* Registers for bare code at @rip, on the guest's stack. */
void guest_prepare_code(struct guest *g, const void *rip);
/* Run the guest and serve its system calls and faults, until one of enum guest_end. */
enum guest_end guest_resume(struct guest *g);
/* guest_prepare() for ring 0 and guest_resume(). */
enum guest_end guest_call(struct guest *g, u64 (*fn)(void *arg), void *arg);
/* The same in ring 3. */
enum guest_end guest_call3(struct guest *g, u64 (*fn)(void *arg), void *arg);
/* One DUNE_RUN: 0 or -errno. */
int guest_run(struct guest *g);
/* guest_run() until an exit other than DUNE_EXIT_INTR: 0 or -errno, never -EINTR. */
int guest_run_to_exit(struct guest *g);
/*
 * guest_prepare() for ring 0 and guest_run_to_exit(): the exit is not served, as guest_resume()
 * does. Bails out on an error.
 */
void guest_first_exit(struct guest *g, u64 (*fn)(void *arg), u64 arg);
/* One DUNE_GET_STATE or DUNE_SET_STATE: 0 or -errno. */
int guest_get_state(struct guest *g, struct dune_state *s);
int guest_set_state(struct guest *g, struct dune_state *s);
/* A line about @end for people; valid until the next call. */
const char *guest_end_name(struct guest *g, enum guest_end end);

/*
 * The guest-physical address of memory of the process, for page-table entries
 * and CR3: the same address, or on processors with few address bits another
 * one, for which a granule is mapped.
 */
u64 guest_gpa(struct guest *g, u64 address);
/* Choose the number of the first granule that is used, 1 until then. No guest exists. */
void guest_granules_from(u32 first);

/*
 * Let the guest's page table lead to the gigabyte around @address. guest_open()
 * has covered the mappings that the program has then, and the places near them.
 */
void guest_cover(struct guest *g, u64 address);

/* Host system call without libc's errno; used by the loop itself. */
long raw_syscall(long nr, long a, long b, long c, long d, long e, long f);

/* Whether the processor is Intel's. Valid after the first guest_vcpu(). */
extern bool guest_vmx;

/*
 * Set before a vCPU is made: its run page is not mapped, and guest.run is a page from which
 * DUNE_SET_STUB takes the first registers.
 */
extern bool guest_hides_run;

/* ---- called inside the guest ---- */

/*
 * A function that is the hypercall instruction; in assembly: HYPERCALL. The call
 * of it uses the stack for a moment.
 */
extern void (*guest_hypercall)(void);
#define HYPERCALL "call *guest_hypercall(%%rip)\n"

/* The handler of all exceptions; NULL: they end guest_resume(). */
extern void (*guest_trap_handler)(struct guest_frame *frame);

/* Ring 0: a system call by hypercall. */
static inline long hypercall(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 asm("r10") = d;
	register long r8 asm("r8") = e;
	register long r9 asm("r9") = f;
	long ret;

	asm volatile(HYPERCALL : "=a"(ret)
		     : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
		     : "memory");
	return ret;
}

static inline long hypercall0(long nr)
{
	return hypercall(nr, 0, 0, 0, 0, 0, 0);
}

static inline long hypercall3(long nr, long a, long b, long c)
{
	return hypercall(nr, a, b, c, 0, 0, 0);
}

/* The most common functions of guests: the word at @address, and @value itself. */
u64 guest_load(void *address);
u64 guest_return(void *value);

/* Ring 0: end guest_resume() with GUEST_ASK; returns when it is resumed. */
u64 guest_ask(u64 value);

/* Entry points of trap.S. */
extern const char guest_stubs[];	/* 256 of 16 bytes */
extern const char guest_lstar0[];	/* SYSCALL from ring 0 */
extern const char guest_lstar3[];	/* SYSCALL from ring 3 */
extern const char guest_start0[];
extern const char guest_start3[];
void guest_hypercall_svm(void);
void guest_hypercall_vmx(void);

/* XCR0; 0 where Linux does not use XSAVE, and so nothing of AVX. */
u64 read_xcr0(void);

#endif
