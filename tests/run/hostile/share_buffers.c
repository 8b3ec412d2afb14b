// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Two processes in the sandbox that share memory make calls at the same time whose vectors the
 * runtime copies. Fails when the copy for one replaces the checked copy of the other.
 */
#define _GNU_SOURCE
#include "child.h"
#include "hostile.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
	volatile int ready, done;
	volatile long result;
	char buffer[64];
} *shared;

static char stack[65536] __attribute__((aligned(16)));

static int pair[2];

static int receive(void *unused)
{
	struct iovec v[2] = { { shared->buffer, 32 }, { shared->buffer + 32, 32 } };
	struct mmsghdr m[2] = {
		{ .msg_hdr = { .msg_iov = v, .msg_iovlen = 1 } },
		{ .msg_hdr = { .msg_iov = v + 1, .msg_iovlen = 1 } },
	};

	shared->ready = 1;
	shared->result = recvmmsg(pair[0], m, 2, 0, NULL);
	shared->done = 1;
	return 0;
}

/*
 * One process waits in recvmmsg with checked vectors; the kernel reads the second one
 * only when the first message has come. Meanwhile the other process calls sendmsg with
 * bad vectors, which is refused. The test fails if their copy replaced the checked
 * vectors.
 */
static void test_buffers(void)
{
	struct iovec v[3] = { { (void *)SPARE, 32 }, { (void *)SPARE, 32 }, { (void *)SPARE, 32 } };
	struct msghdr bad = { .msg_iov = v, .msg_iovlen = 3 };
	pid_t child;
	int i;

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		bail("socketpair: %s", strerror(errno));
	child = clone(receive, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL,
		      NULL, NULL, NULL);
	if (child < 0) {
		ok(errno == ENOSYS, "memory is not shared with a child that runs at the same time");
		return;
	}
	if (!WAIT_FOR(shared->ready, 10))
		bail("the child does not begin");
	for (i = 0; i < 20; i++) {
		usleep(10000);
		sendmsg(pair[1], &bad, 0);
	}
	send(pair[1], "the first", 10, 0);
	send(pair[1], "the second", 11, 0);
	ok(WAIT_FOR(shared->done, 1) && !strcmp(shared->buffer + 32, "the second"),
	   "memory is not shared with a child that runs at the same time");
	diag("received %ld: %s, %s", shared->result, shared->buffer, shared->buffer + 32);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

int main(void)
{
	shared = shared_alloc(sizeof(*shared));
	test_buffers();
	return done();
}
