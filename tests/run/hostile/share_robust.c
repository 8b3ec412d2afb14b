// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Robust lists of processes in the sandbox that share memory. Fails when the kernel walks a list
 * in memory that a vfork child still uses, when a parent loses its list by vfork, or when a
 * process with memory of its own cannot set one.
 */
#define _GNU_SOURCE
#include "child.h"
#include "hostile.h"
#include "tap.h"
#include "timing.h"

#include <linux/futex.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
	volatile int ready, done;
	volatile unsigned int word;
	volatile long result;
} *shared;

static struct robust_list node;
static struct robust_list_head head;

/* The kernel must not write by the list of a process that dies, in memory that lives on. */
static void test_death(void)
{
	pid_t child = fork();

	if (!child) {
		shared->word = syscall(SYS_gettid);
		node.next = &head.list;
		head.list.next = &node;
		head.futex_offset = (char *)&shared->word - (char *)&node;
		syscall(SYS_set_robust_list, &head, sizeof(head));
		if (!vfork()) {
			pid_t parent = getppid();

			shared->ready = 1;
			while (getppid() == parent)
				usleep(1000);
			shared->done = 1;
			_exit(0);
		}
		child_fails("the parent of the vfork child continued");
	}
	if (!WAIT_FOR(shared->ready, 10))
		bail("the vfork child does not begin");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	ok(WAIT_FOR(shared->done, 10) && shared->word == (unsigned int)child,
	   "no robust list is walked in memory that a vfork child still uses");
}

static void test_parent(void)
{
	void *volatile old_head;
	size_t len = 0;
	int status = -1;
	pid_t child = fork();

	if (!child) {
		syscall(SYS_set_robust_list, &head, sizeof(head));
		if (!vfork())
			_exit(0);
		syscall(SYS_get_robust_list, 0, &old_head, &len);
		_exit(old_head == &head && len == sizeof(head) ? 0 : 1);
	}
	waitpid(child, &status, 0);
	is(status, 0, "the parent of a vfork child has its robust list again afterwards");
}

static void test_own_memory(void)
{
	int status = -1;
	pid_t child = vfork();

	if (!child) {
		child = fork();
		if (!child)
			_exit(syscall(SYS_set_robust_list, &head, sizeof(head)) ? 1 : 0);
		waitpid(child, &status, 0);
		shared->result = status;
		_exit(0);
	}
	waitpid(child, NULL, 0);
	is(shared->result, 0, "a process with memory of its own may set a robust list");
}

int main(void)
{
	shared = shared_alloc(sizeof(*shared));
	shared->result = -1;
	test_death();
	test_parent();
	test_own_memory();
	return done();
}
