// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * System calls that end a guest's process or that only the host half may make. Fails when
 * exit_group by a guest does not end the process with its status, when the module makes a fork
 * or an ioctl with KVM_RUN's number on the fast path, or when the child of a fork by a guest can
 * run its parent's vCPU.
 */
#define _GNU_SOURCE
#include "child.h"
#include "guest.h"
#include "request.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct guest g;

static u64 guest_exits(void *arg)
{
	hypercall3(SYS_exit_group, (long)arg, 0, 0);
	return 0;
}

static void exiting(void *arg)
{
	struct guest own;

	guest_open(&own);
	guest_call(&own, guest_exits, arg);
	child_fails("exit_group() by the guest returned");
}

static void exit_group(void)
{
	struct outcome o = in_child(exiting, (void *)37, 20);

	ok(o.code == 37, "exit_group by a guest ends the process with its status (%s)",
	   outcome_text(o));
}

/* fork is a slow call: the host half makes it, while the vCPU exists. */
static u64 guest_forks(void *arg)
{
	return hypercall0(SYS_fork);
}

/* The child of a fork by the slow path is in the host half, with no vCPU. */
static void fork_by_guest(void)
{
	guest_prepare(&g, 0, guest_forks, NULL);
	int reason = until_syscall(&g);

	ok(reason == DUNE_EXIT_SYSCALL && g.run->regs.rax == SYS_fork && !g.run->restart,
	   "fork is always slow (exit %d)", reason);
	int pid = checked_fork();

	if (!pid)
		_exit(guest_run(&g) == -EPERM ? 5 : 6);

	struct outcome o = wait_child(pid, 20);

	ok(o.code == 5, "the child of a fork by a guest cannot run the vCPU (%s)", outcome_text(o));
	g.run->regs.rax = pid;

	enum guest_end end = guest_resume(&g);

	ok(end == GUEST_DONE && (int)g.value == pid,
	   "the parent of a fork by a guest continues (%s)", guest_end_name(&g, end));
}

#define KVM_RUN	0xae80

static u64 guest_asks_kvm(void *arg)
{
	return hypercall3(SYS_ioctl, -1, KVM_RUN, 0);
}

/* A KVM guest entered from this call would change the CPU's state unnoticed. */
static void kvm_run(void)
{
	guest_prepare(&g, 0, guest_asks_kvm, NULL);
	int reason = until_syscall(&g);

	ok(reason == DUNE_EXIT_SYSCALL && g.run->regs.rax == SYS_ioctl,
	   "an ioctl with KVM_RUN's number is always slow (exit %d)", reason);
}

int main(void)
{
	begin(120);
	guest_open(&g);
	exit_group();
	fork_by_guest();
	kvm_run();
	guest_close(&g);
	return done();
}
