// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A process makes a copy of its private memory for a child (DUNE_MAKE_CHILD), which takes long: it
 * gets hardly any time of its CPU. Meanwhile another process closes a vCPU of the same address
 * space, which it has inherited. Fails when that waits for the copy: a process of another priority
 * would then keep it alive after SIGKILL.
 */
#define _GNU_SOURCE
#include "by_fork.h"
#include "child.h"
#include "cpu.h"
#include "private.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES	20000UL

static volatile struct shared {
	int closer;	/* the process that closes the vCPU */
	long error;
	bool copying, copied, close, closed;
} *shared;

/* Another vCPU of the address space, whose run page is private memory; or -errno. */
static long second_vcpu(void)
{
	static struct dune_create_vcpu create = { .size = sizeof(create) };
	static struct dune_stub argument = {
		.size = sizeof(argument), .irq_vector = ALONE_VECTOR,
	};
	long fd = privileged(SYS_ioctl, alone_guest.dev, DUNE_CREATE_VCPU, (long)&create, 0), err;

	if (fd < 0)
		return fd;
	argument.address = (u64)alone_stub;
	err = privileged(SYS_ioctl, fd, DUNE_SET_STUB, (long)&argument, 0);
	return err ? err : fd;
}

static void close_when_told(long vcpu)
{
	shared->closer = hypercall0(SYS_getpid);
	while (!shared->close)
		asm volatile("pause");
	hypercall3(SYS_close, vcpu, 0, 0);
	shared->closed = true;
	child_exit(0);
}

static u64 copy(void *arg)
{
	static struct dune_private pages = { .size = sizeof(pages), .pages = PAGES };
	static const struct sched_param none;
	long vcpu = second_vcpu(), pid = vcpu < 0 ? vcpu : child_fork(SIGCHLD);

	if (!pid)
		close_when_told(vcpu);
	shared->error = pid < 0 ? pid : 0;
	while (!shared->closer && !shared->error)
		hypercall0(SYS_sched_yield);
	/* The child has the last descriptor. */
	shared->error = shared->error ?:
			hypercall3(SYS_close, vcpu, 0, 0) ?:
			privileged(SYS_ioctl, alone_guest.fd, DUNE_ADD_PRIVATE, (long)&pages, 0) ?:
			hypercall3(SYS_sched_setscheduler, 0, SCHED_IDLE, (long)&none);
	shared->copying = true;
	if (!shared->error)
		child_make(DUNE_MAKE_CHILD, child_exit);
	shared->copied = true;
	for (;;)
		hypercall0(SYS_pause);
	return 0;
}

static long page_tables(int pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	return file_key(path, "VmPTE");
}

int main(void)
{
	int slow = usable_cpu(0), other = usable_cpu(1), spinner, maker;
	long before;
	bool during, closed;

	begin(120);
	shared = shared_alloc(sizeof(*shared));
	if (slow == other) {
		skip("one CPU only", "a vCPU is closed during a copy");
		return done();
	}
	if (!alone_vcpus())
		return done();
	maker = checked_fork();
	if (!maker) {
		pin_to(slow);
		alone_start(0, copy, NULL);
	}
	if (!WAIT_FOR(shared->closer, 20))
		bail("no child");
	bind_to(shared->closer, other);
	pin_to(other);
	spinner = checked_fork();
	if (!spinner) {
		pin_to(slow);
		for (;;)
			asm volatile("pause");
	}
	if (!WAIT_FOR(shared->copying, 30) || shared->error)
		bail("no copy: %ld", shared->error);
	/* The pages of the copy count as the maker's page tables. */
	before = page_tables(maker);
	during = WAIT_FOR(page_tables(maker) > before, 30) && !shared->copied;
	shared->close = true;
	closed = WAIT_FOR(shared->closed, 5);
	ok(during && closed && !shared->copied,
	   "a vCPU is closed while its address space is copied (%d, %d, %d)", during, closed,
	   shared->copied);
	kill(spinner, SIGKILL);
	kill(maker, SIGKILL);
	kill(shared->closer, SIGKILL);
	waitpid(spinner, NULL, 0);
	waitpid(maker, NULL, 0);
	return done();
}
