// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program in the sandbox makes processes. Fails when the runtime allows a thread, or a child
 * that shares descriptors, or shares memory while its parent runs (it supports none of them),
 * when a vfork child has its parent's robust list, or when a child is not in the sandbox.
 */
#define _GNU_SOURCE
#include "child.h"
#include "hostile.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char *shared;
static char stack[65536];

static int thread_body(void *arg)
{
	return 0;
}

static void test_processes(void)
{
	pid_t child;
	int status;

	ok(clone(thread_body, stack + sizeof(stack),
		 CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD, NULL) == -1,
	   "threads are refused");
	ok(clone(thread_body, stack + sizeof(stack), CLONE_FILES | SIGCHLD, NULL) == -1 &&
	   errno == EINVAL, "descriptors cannot be shared with a child that runs at the same time");
	ok(clone(thread_body, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL) == -1 &&
	   errno == ENOSYS, "memory cannot be shared with a child that runs at the same time");
	is(call(SYS_unshare, 0, 0, 0, 0, 0, 0), 0, "unshare of nothing: 0");

	shared = shared_alloc(24);
	child = vfork();
	if (!child) {
		shared[0] = 1;
		shared[1] = call(SYS_set_robust_list, (long)shared, 24, 0, 0, 0, 0) == -ENOSYS;
		_exit(3);
	}
	waitpid(child, &status, 0);
	ok(WEXITSTATUS(status) == 3 && shared[0] == 1,
	   "a vfork child writes to its parent's memory, and ends with its status");
	ok(shared[1], "set_robust_list by a vfork child: ENOSYS");

	/* a child in the sandbox is in it, too */
	child = fork();
	if (!child)
		_exit(call(SYS_open, (long)"/proc/self/mem", O_RDWR, 0, 0, 0, 0) == -EACCES &&
		      call(SYS_read, 0, WINDOW, 1, 0, 0, 0) == -EFAULT &&
		      other_mappings() == 0 &&
		      fault_of(read_byte, (void *)DUNE_IMAGE_BASE) == SIGSEGV ? 0 : 1);
	waitpid(child, &status, 0);
	ok(status == 0, "a child is in the sandbox");
}

int main(void)
{
	leave_session();
	test_processes();
	return done();
}
