// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A guest makes the vCPU of a child, and executes a program natively, which keeps the descriptor of
 * the guest's vCPU. The new program maps a stub at the same address, and forks by it with that
 * descriptor. Fails if the child gets the vCPU that was made in the memory of before.
 */
#define _GNU_SOURCE
#include "by_fork.h"
#include "tap.h"
#include "timing.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define AT		((void *)0x5a0000000000UL)
#define FORKED_WELL	43

static u64 makes_and_executes(void *arg)
{
	static char fd[12];
	static char *arguments[] = { "stub_new_image", fd, NULL };

	snprintf(fd, sizeof(fd), "%d", alone_guest.fd);
	if (hypercall3(SYS_fcntl, alone_guest.fd, F_SETFD, 0) || child_make(DUNE_MAKE_CHILD, NULL))
		return 1;
	privileged(SYS_execve, (long)"/proc/self/exe", (long)arguments, 0, 0);
	return 2;
}

static void start(void *arg)
{
	alone_start(0, makes_and_executes, NULL);
}

/* The native call that the stub makes, and what lseek() of @fd does after it. */
static long fork_by_stub(const char *stub, int fd)
{
	long rax = SYS_fork;

	asm volatile("call *%[stub]"
		     : "+a"(rax)
		     : [stub] "r"(stub + DUNE_STUB_CALL), "b"((long)fd)
		     : "rcx", "rdx", "rsi", "rdi", "r11", "memory", "cc");
	return rax;
}

/* The new program. The status is FORKED_WELL only if the child finds no vCPU in the stub. */
static int in_new_image(int fd)
{
	struct sigaction action = { .sa_sigaction = stub_leave, .sa_flags = SA_SIGINFO };
	int self = getpid(), status;

	alone_open();
	if (alone_stub != AT)
		return 1;
	sigaction(SIGILL, &action, NULL);
	fork_by_stub(alone_stub, fd);
	if (getpid() != self)
		_exit(FORKED_WELL);
	if (wait(&status) < 0)
		return 2;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

int main(int argc, char *argv[])
{
	struct outcome o;

	stub_place = AT;
	if (argc > 1)
		return in_new_image(atoi(argv[1]));
	begin(60);
	if (!alone_vcpus())
		return done();
	o = in_child(start, NULL, 30);
	is(o.code, FORKED_WELL, "a child of the new program has no vCPU of the old one (%s)",
	   outcome_text(o));
	return done();
}
