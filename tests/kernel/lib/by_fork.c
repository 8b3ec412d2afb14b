// SPDX-License-Identifier: MIT OR Apache-2.0
/* Children of guests without a host half: see by_fork.h. */
#define _GNU_SOURCE
#include "by_fork.h"
#include "private.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define STACK	16384

u64 child_run;

long child_make(u64 kind, const void *rip)
{
	return hypercall3(kind, (long)rip, 0, 0);
}

long child_clone(long nr, u64 flags)
{
	return privileged(nr, flags, 0, 0, 0);
}

/*
 * Makes a child that begins at the label 2, and then the process for it. The parent continues at
 * the label 3.
 */
#define MAKE_AND_CLONE			\
	"lea 2f(%%rip), %%rdi\n"	\
	HYPERCALL			\
	"test %%rax, %%rax\n"		\
	"jnz 3f\n"			\
	"mov %[call], %%rax\n"		\
	"mov %[flags], %%rdi\n"		\
	"xor %%esi, %%esi\n"		\
	"xor %%edx, %%edx\n"		\
	HYPERCALL			\
	"jmp 3f\n"

/*
 * The child begins at 2, in the function that is the hypercall instruction: with its return address
 * on the stack. Nothing that the compiler keeps on the stack changes between the two calls.
 */
static long make_and_clone(u64 flags)
{
	register long r10 asm("r10") = 0;
	register long r8 asm("r8") = 0;
	long rax = DUNE_MAKE_CHILD, rdi, rsi, rdx;

	asm volatile(MAKE_AND_CLONE
		     "2: add $8, %%rsp\n"
		     "3:\n"
		     : "+a"(rax), "=&D"(rdi), "=&S"(rsi), "=&d"(rdx), "+r"(r10), "+r"(r8)
		     : [call] "r"(DUNE_HOSTCALL | SYS_clone), [flags] "r"(flags)
		     : "memory", "cc");
	return rax;
}

long child_fork(u64 flags)
{
	for (;;) {
		long pid = make_and_clone(flags);

		if (!alone_again())
			return pid;
		alone_take();
	}
}

/* What a child of child_share() is to do, on its stack. */
struct shared_child {
	u64 (*fn)(void *arg);
	void *arg;
};

static void shared_child_begins(struct shared_child *c, u64 run)
{
	child_run = run;
	child_exit(c->fn(c->arg));
}

long child_share(u64 flags, u64 (*fn)(void *arg), void *arg)
{
	static char stacks[8][STACK] __attribute__((aligned(64)));
	static unsigned int next;
	char *top = stacks[next++ % 8] + STACK;
	long rax = DUNE_MAKE_SHARED_CHILD, rdi, rsi, rdx;

	register long r10 asm("r10") = 0;
	register long r8 asm("r8") = 0;
	register struct shared_child *c asm("r12") = (void *)(top - 64);

	*c = (struct shared_child) { fn, arg };
	asm volatile(MAKE_AND_CLONE
		     "2: mov %%r12, %%rsp\n"
		     "mov %%rdi, %%rsi\n"
		     "mov %%r12, %%rdi\n"
		     "call *%[begin]\n"
		     "3:\n"
		     : "+a"(rax), "=&D"(rdi), "=&S"(rsi), "=&d"(rdx), "+r"(r10), "+r"(r8)
		     : [call] "r"(DUNE_HOSTCALL | SYS_clone), [flags] "r"(flags), "r"(c),
		       [begin] "r"(shared_child_begins)
		     : "memory", "cc");
	return rax;
}

void child_exit(u64 status)
{
	for (;;) {
		alone_take();
		hypercall3(SYS_exit_group, status, 0, 0);
	}
}

long child_wait(long pid)
{
	static int status;

	for (;;) {
		long ret = hypercall(SYS_wait4, pid, (long)&status, __WALL, 0, 0, 0);

		if (alone_again()) {
			alone_take();
			continue;
		}
		if (ret != -EINTR)
			return ret < 0 ? ret : status;
	}
}

int child_signal(long pid)
{
	long status = child_wait(pid);

	return status >= 0 && WIFSIGNALED(status) ? WTERMSIG(status) : -1;
}

char *child_private_add(u64 pages, const void *sealed)
{
	static struct dune_private p;

	p = (struct dune_private) {
		.size = sizeof(p), .pages = pages, .address = (u64)sealed,
		.flags = sealed ? DUNE_PRIVATE_SEALED : 0,
	};
	if (privileged(SYS_ioctl, alone_guest.fd, DUNE_ADD_PRIVATE, (long)&p, 0))
		return NULL;
	return private_at(p.guest);
}
