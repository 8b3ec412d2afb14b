// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A process in the sandbox is killed while another one uses the same memory. Fails when a vfork
 * child can make a vfork child of its own, which would outlive it in its parent's memory.
 */
#define _GNU_SOURCE
#include "child.h"
#include "tap.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
	volatile long result;
} *shared;

/* SIGKILL ends the wait for a vfork child, so a vfork child of the child's would live on. */
static void test_grandchild(void)
{
	int child = vfork();

	if (!child) {
		int grandchild = vfork();

		if (!grandchild)
			_exit(0);
		shared->result = grandchild < 0 ? -errno : grandchild;
		_exit(0);
	}
	waitpid(child, NULL, 0);
	ok(shared->result == -ENOSYS, "a vfork child cannot vfork");
}

int main(void)
{
	shared = shared_alloc(sizeof(*shared));
	test_grandchild();
	return done();
}
