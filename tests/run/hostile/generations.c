// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program in the sandbox makes many generations of children: a vfork child forks, and its child
 * has a vfork child. Fails when the last generation has less room for the arguments of a call than
 * the first: a child that has memory of its own must keep no copies of its parent's calls.
 */
#define _GNU_SOURCE
#include "child.h"
#include "tap.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define GENERATIONS	1000	/* each kept 16 bytes */
#define MESSAGES	16
#define PARTS		1024
#define LIMIT		120	/* seconds for all generations */

/* How many of these messages one call passes on: as many as there is room for their parts. */
static int pass_messages(void)
{
	static struct iovec parts[PARTS];
	struct mmsghdr messages[MESSAGES] = {};
	static char byte;
	int i, n, ends[2];

	for (i = 0; i < PARTS; i++)
		parts[i].iov_base = &byte;
	parts[0].iov_len = 1;
	for (i = 0; i < MESSAGES; i++) {
		messages[i].msg_hdr.msg_iov = parts;
		messages[i].msg_hdr.msg_iovlen = PARTS;
	}
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, ends))
		return -1;
	n = sendmmsg(ends[0], messages, MESSAGES, 0);
	close(ends[0]);
	close(ends[1]);
	return n;
}

/* Runs in each generation, and returns in the last one alone. Nobody waits for the others. */
static void descend(void)
{
	volatile int generation;

	for (generation = 0; generation < GENERATIONS; generation++) {
		if (!vfork()) {
			/* The grandchild has a copy of this frame, and continues the loop. */
			if (!fork())
				continue;
			_exit(0);
		}
		_exit(0);
	}
}

int main(void)
{
	volatile int *passed = shared_alloc(2 * sizeof(*passed));
	int tenths;

	passed[0] = pass_messages();
	if (!fork()) {
		descend();
		passed[1] = pass_messages();
		_exit(0);
	}
	for (tenths = 0; tenths < LIMIT * 10 && !passed[1]; tenths++)
		usleep(100000);
	ok(passed[0] > 0, "the first generation passes %d messages on", passed[0]);
	is(passed[1], passed[0], "generation %d passes as many on", GENERATIONS);
	return done();
}
