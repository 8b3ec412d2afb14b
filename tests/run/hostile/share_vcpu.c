// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A child in the sandbox that shares memory or descriptors with its parent maps the parent's
 * vCPU. Each way of sharing worked once. Fails when one of them gives the child the vCPU.
 */
#define _GNU_SOURCE
#include "child.h"
#include "hostile.h"
#include "tap.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

static struct {
	volatile long result;	/* how many vCPUs were mapped */
	volatile int found;
} *shared;

static char stack[65536] __attribute__((aligned(16)));

static int map_all_vcpus(void *unused)
{
	int fds[16], i, n = find_descriptors("dune-vcpu", fds, 16);

	shared->found = n;
	shared->result = 0;
	for (i = 0; i < n; i++)
		if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[i], 0) != MAP_FAILED)
			shared->result++;
	return 0;
}

static void test_vcpu(const char *name, int flags)
{
	int status = -1;
	pid_t child;

	shared->result = -1;
	shared->found = -1;
	child = clone(map_all_vcpus, stack + sizeof(stack), flags | SIGCHLD, NULL,
		      NULL, NULL, NULL);
	if (child < 0) {
		ok(errno == EINVAL || errno == ENOSYS, "%s", name);
		return;
	}
	waitpid(child, &status, 0);
	ok(status == 0 && shared->found == 1 && shared->result == 0, "%s", name);
}

int main(void)
{
	shared = shared_alloc(sizeof(*shared));
	test_vcpu("a vfork child with the parent's descriptors cannot map its vCPU",
		  CLONE_VM | CLONE_VFORK | CLONE_FILES);
	test_vcpu("a vfork child with copies of the parent's descriptors cannot map its vCPU",
		  CLONE_VM | CLONE_VFORK);
	test_vcpu("a child that its parent waits for cannot map its parent's vCPU",
		  CLONE_VFORK | CLONE_FILES);
	test_vcpu("the child of a fork cannot map its parent's vCPU", 0);
	return done();
}
