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

/* The parent's death: does the kernel write by its list in memory that lives? */
static void test_robust_list(void)
{
	void *volatile old_head;
	size_t len = 0;
	pid_t child;
	int i;

	child = fork();
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
	while (!shared->ready)
		usleep(1000);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	for (i = 0; i < 10000 && !shared->done; i++)
		usleep(1000);
	ok(shared->done && shared->word == (unsigned int)child,
	   "no robust list is walked in memory that a vfork child still uses");

	child = fork();
	if (!child) {
		syscall(SYS_set_robust_list, &head, sizeof(head));
		if (!vfork())
			_exit(0);
		syscall(SYS_get_robust_list, 0, &old_head, &len);
		_exit(old_head == &head && len == sizeof(head) ? 0 : 1);
	}
	waitpid(child, &i, 0);
	ok(i == 0, "the parent of a vfork child has its robust list again afterwards");

	child = vfork();
	if (!child) {
		child = fork();
		if (!child)
			_exit(syscall(SYS_set_robust_list, &head, sizeof(head)) ? 1 : 0);
		waitpid(child, &i, 0);
		shared->result = i;
		_exit(0);
	}
	waitpid(child, NULL, 0);
	ok(shared->result == 0, "a process with memory of its own may set a robust list");
}

int main(void)
{
	shared = shared_alloc(sizeof(*shared));
	test_robust_list();
	return done();
}
