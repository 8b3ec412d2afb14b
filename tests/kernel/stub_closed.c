// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A guest closes its own vCPU's descriptor, and while the module works for this guest, another
 * process closes the last one. Fails when the vCPU is freed before the stub's lseek() has ended:
 * the process has one thread, so that lseek() has no reference of the kernel's to the file.
 */
#include "by_alone.h"
#include "child.h"
#include "modules.h"
#include "tap.h"
#include "timing.h"

#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* So many pages that adding them lasts longer than the other process's close(). */
#define PAGES	20000
#define ROUNDS	50

static volatile struct shared {
	bool adding, added;
	bool in_time;		/* the other process closed it before that ended */
	long before, after;	/* references to the module, around that close() */
} *shared;

static u64 close_and_add(void *arg)
{
	hypercall3(SYS_close, alone_guest.fd, 0, 0);
	shared->adding = true;
	hypercall3(DUNE_ADD_PAGES, PAGES, 0, 0);
	shared->added = true;
	return 0;
}

static void close_last(void)
{
	long before, after;

	while (!shared->adding)
		;
	before = dune_users_now();
	close(alone_guest.fd);
	after = dune_users_now();
	shared->in_time = !shared->added;
	shared->before = before;
	shared->after = after;
	_exit(0);
}

static void start(void *arg)
{
	alone_open();
	close(alone_guest.dev);
	if (!checked_fork())
		close_last();
	alone_enter(0, close_and_add, NULL);
}

int main(void)
{
	bool hung = false;
	int rounds = 0;

	begin(300);
	if (!alone_vcpus())
		return done();
	shared = shared_alloc(sizeof(*shared));
	while (rounds++ < ROUNDS && !hung && !shared->in_time) {
		*shared = (struct shared){};
		hung = in_child(start, NULL, 60).hung;
		WAIT_FOR(shared->before, 10);
	}
	printf("# %d rounds\n", rounds);
	ok(!hung, "the process ends");
	ok(shared->in_time, "the other process closed the vCPU while the module worked for its guest");
	ok(shared->in_time && shared->after == shared->before,
	   "the vCPU was still there (%ld references, then %ld)", shared->before, shared->after);
	ok(dune_users_left() == 0, "and is gone in the end");
	return done();
}
