/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * For the tests of vCPUs without a host half (struct dune_stub). Their guest never comes back to
 * user mode: it runs in a child process, leaves its results in shared memory, and ends the process.
 */
#ifndef DUNE_TESTS_BY_ALONE_H
#define DUNE_TESTS_BY_ALONE_H

#include "by_stub.h"
#include "child.h"
#include "guest.h"

#include <signal.h>

/* The interrupt by which the guest learns of a signal. */
#define ALONE_VECTOR	0x40

#define ALONE_STACK_SIZE	65536

/* The kernel's frame of a signal, struct rt_sigframe. */
struct alone_frame {
	u64 pretcode;
	struct {
		u64 flags, link;
		u64 stack[3];
		u64 r8, r9, r10, r11, r12, r13, r14, r15;
		u64 di, si, bp, bx, dx, ax, cx, sp, ip, eflags;
		u64 segments, err, trapno, oldmask, cr2, fpstate, reserved[8];
		u64 mask;
	} uc;
	u64 info[16];
};

_Static_assert(sizeof(struct alone_frame) == 8 + 304 + 128, "not the kernel's frame");

/* The run page, at the address where the guest has it. For the guest. */
extern struct dune_run *alone_run;
/* Of the child. */
extern struct guest alone_guest;
extern char *alone_stub;

/* Whether the FPU registers are loaded from a signal's frame; true at first. */
extern bool alone_keeps_fpu;

/*
 * The guest's handlers, which may be NULL: of an interrupt for a signal, and of an exception. The
 * former is called after the FPU registers were loaded.
 */
extern void (*alone_on_signal)(const struct dune_signal *signal);
extern void (*alone_on_fault)(struct guest_frame *frame, u64 cr2);

/* Called before the vCPU is bound, with these flags; NULL and 0 at first. */
extern void (*alone_before_bind)(void);
extern u32 alone_flags;

/* A descriptor to which alone_open() writes the stub's address; 0: none. */
extern int alone_on_open;

/* Whether this machine can have such a vCPU. If not, reports that as skipped. */
bool alone_vcpus(void);

/* In a child: make alone_guest and its stub, not bound yet. */
void alone_open(void);
/* DUNE_SET_STUB with @flags and @vector: 0 or -errno. */
long alone_bind(struct dune_stub *argument, u32 flags, u32 vector);
/*
 * After alone_open(): make another vCPU of the same address space and bind it to alone_stub. In
 * ring 0 it begins with fn(arg), which must not return. Returns its descriptor.
 */
int alone_second(u64 (*fn)(void *arg), void *arg);
/*
 * After alone_open(): bind alone_guest to alone_stub, and run fn(arg) in ring @ring. Its result is
 * the process's exit status.
 */
void alone_enter(unsigned int ring, u64 (*fn)(void *arg), void *arg) __attribute__((noreturn));
/* Both alone_open() and alone_enter(). */
void alone_start(unsigned int ring, u64 (*fn)(void *arg), void *arg) __attribute__((noreturn));
/* alone_start() in a child, in ring 0. @seconds: as of in_child(). */
struct outcome alone_in_child(u64 (*fn)(void *arg), void *arg, unsigned int seconds);

/* ---- called inside the guest, in ring 0 */

/* A call by the stub, refused or not. */
static inline long privileged(long nr, long a, long b, long c, long d)
{
	return hypercall(DUNE_HOSTCALL | nr, a, b, c, d, 0, 0);
}

/* Let user mode make every system call from now on (DUNE_RUN_SLOW_SYSCALL), or not. */
void alone_slow(bool slow);
/* Set the kernel's action of signal @nr to the stub, with more flags, by a privileged call. */
long alone_catch(int nr, u64 flags);
/* Make an alternate stack for frames, of ALONE_STACK_SIZE bytes. Returns its lowest address. */
char *alone_stack(void);
/* Whether the last hypercall was not made or must be made again. Clears the mark. */
bool alone_again(void);
/* Take the interrupts that wait. */
void alone_take(void);
/* Set the thread's mask of blocked signals, as a guest does after it has taken a signal. */
void alone_unblock(u64 mask);

#endif
