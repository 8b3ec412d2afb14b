// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A vCPU belongs to one thread, and a device's descriptor to one process. Fails when another
 * thread or a child uses the vCPU, its state or its run page, when a child makes a vCPU by its
 * parent's descriptor, or when either of them cannot have a vCPU of its own.
 */
#define _GNU_SOURCE
#include "child.h"
#include "guest.h"
#include "tap.h"
#include "timing.h"
#include "uapi.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct guest g;

static void *thread(void *arg)
{
	struct dune_create_vcpu c = { .size = sizeof(c) };
	struct dune_state s = { .size = sizeof(s) };
	int *result = arg;

	result[0] = call(g.fd, DUNE_RUN, NULL);
	result[1] = call(g.fd, DUNE_GET_STATE, &s);
	s = g.state;
	result[2] = call(g.fd, DUNE_SET_STATE, &s);
	result[3] = ioctl(g.dev, DUNE_CREATE_VCPU, &c);
	result[4] = raw_syscall(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, g.fd, 0);
	return NULL;
}

static void threads(void)
{
	int result[5];
	pthread_t t;

	guest_prepare(&g, 0, return_42, NULL);
	pthread_create(&t, NULL, thread, result);
	pthread_join(t, NULL);
	ok(result[0] == -EPERM, "another thread cannot run the vCPU: EPERM");
	ok(result[1] == -EPERM && result[2] == -EPERM,
	   "another thread cannot read or write the vCPU's state: EPERM");
	ok(result[4] == -EPERM, "another thread cannot map the vCPU's run page: EPERM");
	ok(result[3] >= 0, "another thread makes a vCPU of its own in the same address space");
	guest_prepare(&g, 0, return_42, NULL);
	ok(ioctl(result[3], DUNE_RUN, 0) < 0 && errno == EPERM,
	   "DUNE_RUN on the vCPU of a thread that has ended gives EPERM");
	close(result[3]);
}

static void child(void *arg)
{
	struct dune_create_vcpu c = { .size = sizeof(c) };
	struct dune_state s = g.state;
	struct guest own;
	int bits = 0;

	bits |= (call(g.fd, DUNE_RUN, NULL) == -EPERM) << 0;
	bits |= (call(g.fd, DUNE_SET_STATE, &s) == -EPERM) << 1;
	bits |= (call(g.fd, DUNE_GET_STATE, &s) == -EPERM) << 2;
	bits |= (call(g.dev, DUNE_CREATE_VCPU, &c) == -EPERM) << 3;
	/* The run page is VM_DONTCOPY: the child does not have it. */
	bits |= (syscall(SYS_mincore, g.run, 4096, &c) < 0 && errno == ENOMEM) << 4;
	if (!guest_try_open(&own)) {
		bits |= 1 << 5;
		bits |= (guest_call(&own, return_42, NULL) == GUEST_DONE && own.value == 42) << 6;
	}
	_exit(bits);
}

static void processes(void)
{
	struct outcome o = in_child(child, NULL, 20);

	ok(outcome_has(o, 1), "a child after fork cannot run the parent's vCPU: EPERM");
	ok(outcome_has(o, 6),
	   "a child after fork cannot read or write the vCPU's state: EPERM");
	ok(outcome_has(o, 8),
	   "a child after fork cannot make a vCPU on the parent's device: EPERM");
	ok(outcome_has(o, 16), "a child after fork does not inherit the run page");
	ok(outcome_has(o, 96),
	   "a child after fork opens the device and runs a guest of its own");
	guest_prepare(&g, 0, return_42, NULL);
	ok(guest_resume(&g) == GUEST_DONE && g.value == 42,
	   "the parent's guest runs after the child has tried");
}

int main(void)
{
	begin(60);
	guest_open(&g);
	threads();
	processes();
	guest_close(&g);
	return done();
}
