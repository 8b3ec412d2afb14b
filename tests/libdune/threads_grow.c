// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The arena grows when its first piece is used up, which takes some system calls.
 * A thread that needs a page in the meantime waits for it. Fails when that thread is
 * told that there is no memory.
 */
#include <dune.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
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
		_exit(1);
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
		_exit(2);
	grows = 1;
	while (asks < 2)
		sched_yield();
	for (i = 0; i < 200 && !has; i++)
		usleep(1000);
	answer.id = call.id;
	if (ioctl(held, SECCOMP_IOCTL_NOTIF_SEND, &answer))
		_exit(3);
	return arg;
}

/* From here on the calling thread's mmap() waits for watch(). */
static long filter_mmap(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 4, .filter = code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
		       &program);
}

/* Two threads in the guest, and the piece has nothing left for either. */
__attribute__((noreturn)) static void child(void)
{
	pthread_t thread;
	void *mine = NULL;
	long i, listener;

	pthread_create(&thread, NULL, second, NULL);
	pthread_create(&thread, NULL, watch, NULL);
	if (dune_enter(config))
		_exit(4);
	entered = 1;
	wait_for(&asks);
	listener = filter_mmap();
	if (listener < 0)
		_exit(5);
	held = listener;
	for (i = 0; i < MANY && !grows; i++)
		mine = dune_page_alloc(1);
	if (!grows)
		_exit(GREW);
	wait_for(&has);
	_exit(!mine ? 6 : !page ? 7 : 0);
}

static int run(void)
{
	int status = -1;

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
		return 1;
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
