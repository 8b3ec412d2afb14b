// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A guest closes its own vCPU's descriptor, and while the module works for this guest, another
 * process closes the last one. Fails when the vCPU is freed before the stub's lseek() has ended:
 * the process has one thread, so the kernel takes no reference to the file for that lseek().
 */
#include "by_alone.h"
#include "child.h"
#include "modules.h"
#include "tap.h"
#include "timing.h"

#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* So many pages that adding them lasts longer than the other process's close(). */
#define PAGES	20000
#define ROUNDS	50

static volatile struct shared {
	bool adding, closed;
	long before, after;	/* references to the module, around the other's close() */
} *shared;

static u64 close_and_add(void *arg)
{
	hypercall3(SYS_close, alone_guest.fd, 0, 0);
	shared->adding = true;
	/* Then the stub finds no vCPU at that number, and SIGILL ends the process. */
	hypercall3(DUNE_ADD_PAGES, PAGES, 0, 0);
	return 0;
}

static void close_last(int guest)
{
	while (!shared->adding && getppid() == guest)
		;
	shared->before = dune_users_now();
	close(alone_guest.fd);
	shared->after = dune_users_now();
	shared->closed = true;
	_exit(0);
}

static void start(void *arg)
{
	int guest = getpid();

	alone_open();
	close(alone_guest.dev);
	if (!checked_fork())
		close_last(guest);
	alone_enter(0, close_and_add, NULL);
}

int main(void)
{
	struct outcome o;
	int rounds = 0;
	bool stays;

	begin(300);
	if (!alone_vcpus())
		return done();
	shared = shared_alloc(sizeof(*shared));
	/* The other process may close it too late. */
	do {
		*shared = (struct shared){};
		o = in_child(start, NULL, 60);
		stays = WAIT_FOR(shared->closed, 10) && shared->after == shared->before;
	} while (++rounds < ROUNDS && !stays && o.signal == SIGILL);
	printf("# %d rounds\n", rounds);
	ok(o.signal == SIGILL, "a guest without its descriptor ends (%s)", outcome_text(o));
	ok(stays, "its vCPU is there until the module has done its work (%ld references, then %ld)",
	   shared->before, shared->after);
	ok(dune_users_left() == 0, "and is gone in the end");
	return done();
}
