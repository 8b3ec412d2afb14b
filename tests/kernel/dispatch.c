// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Syscall user dispatch: once the selector demands it, a guest's call becomes
 * SIGSYS with its number. The guest flips the selector itself, so the module
 * can see the change only at the next hypercall. Fails when the fast path does not
 * look at the selector.
 */
#define _GNU_SOURCE
#include "child.h"
#include "guest.h"
#include "tap.h"
#include "timing.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

static volatile char selector;
static volatile int number;

static void sigsys(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	selector = 0;		/* the return from this handler is a system call too */
	number = info->si_syscall;
	uc->uc_mcontext.gregs[REG_RAX] = 4243;
}

static u64 guest(void *arg)
{
	long before = hypercall0(SYS_getppid);

	selector = 1;
	long during = hypercall0(SYS_getppid);
	long after = hypercall0(SYS_getppid);

	return before == after && during == 4243;
}

static void child(void *arg)
{
	struct sigaction sa = { .sa_sigaction = sigsys, .sa_flags = SA_SIGINFO };
	struct guest g;

	guest_open(&g);
	sigaction(SIGSYS, &sa, NULL);
	if (prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, &selector))
		_exit(CHILD_SKIPS);
	if (guest_call(&g, guest, NULL) != GUEST_DONE)
		child_fails("the guest did not return");
	if (g.value != 1)
		child_fails("a call was not dispatched, or returned another value");
	if (number != SYS_getppid)
		child_fails("SIGSYS has another number");
	_exit(0);
}

int main(void)
{
	begin(60);
	struct outcome o = in_child(child, NULL, 20);

	if (o.code == CHILD_SKIPS)
		skip("kernel without syscall user dispatch", "syscall user dispatch");
	else
		ok(!o.code, "a dispatched call is SIGSYS with the guest's number (%s)",
		   outcome_text(o));
	return done();
}
