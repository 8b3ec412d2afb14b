/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The functions beyond dune.h for a runtime in private memory, as dune-run is (run/). The runtime
 * is one image with the library of the same tree (libdune-runtime.a): unlike dune.h this header is
 * not installed.
 *
 * The image is linked to the upper half of the linear addresses, where only ring 0 of the guest
 * finds it. No address of the process leads to it: nothing that the kernel does for the program
 * reaches it. A native program starts the runtime (run/start/): it adds the image to the private
 * memory of an address space, with page tables for it, and enters the guest there. The process then
 * has no host half. Its thread executes the stub of the module (struct dune_stub in <linux/dune.h>)
 * in user mode, and nothing else.
 *
 * Ring 0 of such a process does not enable interrupts, and executes no SYSCALL; ring 3 receives
 * the signals. What the kernel reads or writes for ring 0 has to be at an address of the process.
 */
#ifndef DUNE_RUNTIME_H
#define DUNE_RUNTIME_H

#include <dune.h>
#include <dune_addresses.h>
#include <linux/dune.h>

/*
 * The descriptors of vCPUs, and a runtime's other descriptors, get numbers from here on, which
 * programs do not expect. The kernel's table has 64 places at first, a number from 64 on makes it
 * grow, and a fork copies it up to the highest open number. So four numbers are left: for the vCPU
 * and three more (run/own/hidden.h).
 */
#define DUNE_HIGH_FD	60

/* Returns the number of the calling thread's descriptor, or -1 before it entered. */
int dune_vcpu_fd(void);

/* Moves that descriptor to another number. Returns this number or an error. Ring 0. */
long dune_vcpu_fd_move(void);

/*
 * execveat() for a runtime that executes itself, in ring 0. @name, @argv and @envp are where the
 * kernel finds them (dune_copies.h). As dune_syscall_forward() it can return DUNE_AGAIN.
 */
long dune_execveat(long fd, uint64_t name, uint64_t argv, uint64_t envp, long flags);

/*
 * dune_syscall_forward() with all arguments from the frame, but for the number
 * of the call. It is a pointer, as dune_hypercall() is, because the hypercall
 * instruction differs between vendors.
 */
extern long (*dune_forward_tf)(struct dune_tf *tf, long nr);

/* The pages of the image that each process has from the start, by their rights. */
struct dune_image_part {
	uint64_t start, end;		/* linear addresses, multiples of a page */
	uint64_t rights;		/* DUNE_PTE_W, DUNE_PTE_NX */
};

/* What the native start reads at the beginning of the image. */
struct dune_image_head {
	/*
	 * Sealed: the parts of constants and of code, one after the other, from the beginning of
	 * the image. Then the part with initial contents, and those that are zero.
	 */
	struct dune_image_part constants, code, data, zero[3];
	uint64_t end;			/* of the image */
	uint64_t start;			/* of struct dune_start, in @data */
	uint64_t lstar[2];		/* dune_state.lstar for DUNE_VENDOR_SVM and _VMX */
	struct dune_state state;	/* without @cr3 and @lstar */
	struct dune_regs regs;
};

#define DUNE_AUXV_WORDS	64

/*
 * What the native start has made. It is in the image's data. The module keeps a copy of all private
 * memory as it is then (DUNE_STUB_TEMPLATE), with which the process begins after an execve. Such
 * a process has no native start: the library itself sets the members whose values differ.
 */
struct dune_start {
	struct dune_info info;
	uint64_t private_gpa;		/* the first of private memory, a multiple of 1 GB */
	uint64_t root;			/* guest-physical address of the page table */
	uint64_t spare, spares;		/* guest-physical address and number of unused pages */
	uint64_t window, run;		/* guest-physical: dune_copies.h, struct dune_run */
	uint64_t stub;			/* in the process, followed by the window */
	uint64_t scratch;
	uint64_t frames, frames_end;	/* the kernel's stack for signals */
	uint64_t tables;		/* pages in use as page tables */
	uint32_t have_1g;		/* the processor has pages of 1 GB */
	int vcpu;
	/* In the first process of a tree: */
	uint64_t image, image_end;	/* of the native start, to be unmapped by the runtime */
	uint64_t *stack;		/* as the kernel made it */
	uint32_t auxc;			/* entries of its auxiliary vector, with AT_NULL */
	/* In a process that was executed, where @stack is NULL and there is no vDSO: */
	uint64_t strings;		/* @argc arguments, and then @envc of the environment */
	/*
	 * In both. No count is read from the stack again, which another process may have
	 * changed:
	 */
	uint32_t argc, envc;
	uint64_t name;			/* as AT_EXECFN */
	uint64_t secure;		/* as AT_SECURE */
	/* What the kernel gave the first process of the tree: */
	uint64_t auxv[DUNE_AUXV_WORDS];
	char platform[16];		/* as AT_PLATFORM */
	uint32_t heap_is_random;
	uint32_t vdso_is_above;		/* its place was above the stack */
	uint32_t vdso_bytes;		/* of its mapping; 0: its tables are not known */
	uint32_t vdso_getcpu;		/* offset of this function in it; 0: it has none */
};

/*
 * The runtime, which the library calls in ring 0 when it is set up, with interrupts off. RFLAGS.AC
 * is set, so that the runtime can access memory of the process by ordinary instructions, until it
 * calls dune_runtime_close().
 */
void dune_runtime_main(const struct dune_start *start) __attribute__((noreturn));

/*
 * Gives back the pages of @size bytes of .bss at @p, both multiples of a page, which are zero when
 * they are used again: each page of a process is copied for its children.
 */
void dune_runtime_forget(void *p, size_t size);

/*
 * The library accesses nothing between @base and @base + @size for the program, whatever the
 * program's pointers, stack pointer or frames of signals say.
 */
void dune_runtime_refuse(uint64_t base, size_t size);

/* From here on only dune_copy() reaches memory of the process. */
void dune_runtime_close(void);

#endif /* DUNE_RUNTIME_H */
