// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The services (common/services.h) of a program in ring 0: each is a system call by hypercall, or
 * a hostcall, which host/loop.c answers.
 */
#include "guest.h"
#include "hostcall.h"

static long action(int sig, const struct ksigaction *real, struct ksigaction *old)
{
	return dune_hypercall(__NR_rt_sigaction, sig, (long)real, (long)old, SIGSET_SIZE, 0, 0);
}

static long mask(int how, u64 set, u64 *old)
{
	return dune_hypercall(__NR_rt_sigprocmask, how, (long)&set, (long)old, SIGSET_SIZE, 0, 0);
}

static long forward_mask(u64 set)
{
	return dune_syscall_forward(__NR_rt_sigprocmask, SIG_SETMASK, (long)&set, 0, SIGSET_SIZE,
				    0, 0);
}

static void print(const char *text, u64 size)
{
	dune_hypercall(__NR_write, 2, (long)text, size, 0, 0, 0);
}

/*
 * Makes the call of number @nr with the frame's arguments. Ring 0 with interrupts off cannot
 * run a handler now, so it must not wait for one either.
 */
static long forward(struct dune_tf *tf, u64 nr)
{
	if (tf->rflags & RFLAGS_IF)
		return dune_forward_tf(tf, nr);
	return dune_hypercall(nr, tf->rdi, tf->rsi, tf->rdx, tf->r10, tf->r8, tf->r9);
}

/*
 * The host half makes the call, which has to know a mask that holds while the call waits,
 * or that the CPU may be another one.
 */
static long special(struct dune_tf *tf)
{
	return forward(tf, HC_SYSCALL((u32)tf->rax));
}

static long make_child(struct dune_clone *c)
{
	if (c->tf->rflags & RFLAGS_IF)
		return dune_syscall_forward(HC_CLONE, (long)c, 0, 0, 0, 0, 0);
	return dune_hypercall(HC_CLONE, (long)c, 0, 0, 0, 0, 0);
}

static long execute(long fd, long name, long argv, long envp, long flags)
{
	return dune_hypercall(__NR_execveat, fd, name, argv, envp, flags, 0);
}

static void move(int fd)
{
	WRITE_ONCE(dune_self()->vcpu, fd);
}

/* The host half has queued all signals, and changes no FPU register. */
static bool settle(struct dune_thread *t)
{
	(void)t;
	return false;
}

static void interrupt(void)
{
	dune_hypercall(HC_NOP, 0, 0, 0, 0, 0, 0);
}

static void no_threads(void)
{
	dune_hypercall(HC_NO_THREADS, 0, 0, 0, 0, 0, 0);
}

static void no_granule(u64 va)
{
	dune_hypercall(HC_NO_GRANULE, va, 0, 0, 0, 0, 0);
}

static void no_pages(u64 va)
{
	dune_hypercall(HC_NO_PAGES, va, 0, 0, 0, 0, 0);
}

/* @no_granule and @no_pages were asked already. */
static bool fill(u64 va)
{
	(void)va;
	return false;
}

static void __noreturn die(int sig)
{
	for (;;)
		dune_hypercall(HC_DIE, sig, 0, 0, 0, 0, 0);
}

static void __noreturn bad_stack(void)
{
	for (;;)
		dune_hypercall(HC_BAD_STACK, 0, 0, 0, 0, 0, 0);
}

static const struct dune_services by_host = {
	.action = action,
	.mask = mask,
	.forward_mask = forward_mask,
	.print = print,
	.special = special,
	.make_child = make_child,
	.execute = execute,
	.move = move,
	.settle = settle,
	.interrupt = interrupt,
	.no_threads = no_threads,
	.no_granule = no_granule,
	.no_pages = no_pages,
	.fill = fill,
	.die = die,
	.bad_stack = bad_stack,
};

const struct dune_services *const dune_services = &by_host;
