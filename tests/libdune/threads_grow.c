// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The arena grows when its first piece is used up, which takes some system calls.
 * A thread that needs a page in the meantime waits for it. Fails when that thread is
 * told that there is no memory.
 */
#include <dune.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "filter.h"
#include "tap.h"

#define MB	(1L << 20)
#define ARENA	((char *)0x210000000000)
#define STARTS	100
#define MANY	(MB / 4096)	/* more than the first piece has */
#define GREW	9		/* a child's status: the arena had grown before the test */

static const struct dune_config *config;
static volatile int entered, held, grows, asks, has;
static void *volatile page;

static void wait_for(volatile int *what)
{
	while (!*what)
		sched_yield();
}

/* Wants a page while the first thread's mmap() waits. */
static void *second(void *arg)
{
	wait_for(&entered);
	if (dune_enter(config))
		child_fails("the second thread cannot enter");
	sched_yield();
	asks = 1;		/* all memory that this thread uses is present now */
	wait_for(&grows);
	asks = 2;
	page = dune_page_alloc(1);
	has = 1;
	return arg;
}

/* Stays outside the guest: sees the first thread's mmap(), and lets it continue in the end. */
static void *watch(void *arg)
{
	struct seccomp_notif_resp answer = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
	struct seccomp_notif call = { 0 };
	int i;

	wait_for(&held);
	if (ioctl(held, SECCOMP_IOCTL_NOTIF_RECV, &call))
		child_fails("the filter's listener cannot receive the call");
	grows = 1;
	while (asks < 2)
		sched_yield();
	for (i = 0; i < 200 && !has; i++)
		usleep(1000);
	answer.id = call.id;
	if (ioctl(held, SECCOMP_IOCTL_NOTIF_SEND, &answer))
		child_fails("the filter's listener cannot answer the call");
	return arg;
}

/* Two threads in the guest, and the piece has nothing left for either. */
__attribute__((noreturn)) static void child(void)
{
	pthread_t thread;
	void *mine = NULL;
	long i;

	pthread_create(&thread, NULL, second, NULL);
	pthread_create(&thread, NULL, watch, NULL);
	if (dune_enter(config))
		child_fails("the first thread cannot enter");
	entered = 1;
	wait_for(&asks);
	/* From here on this thread's mmap() waits for watch(). */
	held = filter_call(SYS_mmap, SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);
	for (i = 0; i < MANY && !grows; i++)
		mine = dune_page_alloc(1);
	if (!grows)
		_exit(GREW);
	wait_for(&has);
	if (!mine)
		child_fails("the first thread got no page");
	if (!page)
		child_fails("the second thread got no page");
	_exit(0);
}

static int run(void)
{
	int status = -1;

	fflush(stdout);
	if (!fork())
		child();
	wait(&status);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(int argc, char **argv)
{
	static const struct dune_config growing = {
		.size = sizeof(growing), .arena = ARENA, .arena_size = MB, .arena_limit = 2 * MB,
	};
	int starts = argc > 1 ? atoi(argv[1]) : 1;
	char number[16];
	int own, in_place;

	own = run();
	if (mmap(ARENA, MB, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != ARENA)
		bail("the arena's place is in use");
	config = &growing;
	in_place = run();
	/*
	 * By where the program is loaded, which children share, the block of the
	 * second thread may be what uses the piece up: then somewhere else.
	 */
	if ((own == GREW || in_place == GREW) && starts < STARTS) {
		snprintf(number, sizeof(number), "%d", starts + 1);
		execl("/proc/self/exe", argv[0], number, NULL);
	}
	is(own, 0, "the library's own arena grows: both threads get a page");
	is(in_place, 0, "an arena grows in its place: both threads get a page");
	return done();
}
