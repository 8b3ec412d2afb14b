// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The arena grows when its first piece is used up, which takes some system
 * calls. A thread that needs a page meanwhile waits for that, and gets one.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tap.h"

#define MB	(1L << 20)
#define ARENA	((char *)0x210000000000)
#define STARTS	100
#define MANY	(MB / 4096)	/* more than the first piece has */

/* What a child tells: pages that are left before it grows, once both threads run. */
static volatile long *left;

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
	asks = 1;		/* all that this thread uses is there now */
	wait_for(&grows);
	asks = 2;
	page = dune_page_alloc(1);
	has = 1;
	return arg;
}

/* Stays outside: sees the first thread's mmap(), and lets it go on at last. */
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

/* What the calling thread's mmap() does from here on. */
static long filter_mmap(unsigned int action, unsigned int flags)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 4, .filter = code };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/* Until it has to grow, and cannot. */
static void count(void)
{
	long n = 0;

	if (filter_mmap(SECCOMP_RET_ERRNO | ENOMEM, 0))
		_exit(10);
	while (n < MANY && dune_page_alloc(1))
		n++;
	*left = n;
	_exit(0);
}

/* Two threads in the guest, and the piece has nothing left for either. */
__attribute__((noreturn)) static void child(void)
{
	pthread_t thread;
	long i, listener;
	void *mine;

	pthread_create(&thread, NULL, second, NULL);
	pthread_create(&thread, NULL, watch, NULL);
	if (dune_enter(config))
		_exit(4);
	entered = 1;
	wait_for(&asks);
	if (*left < 0)
		count();
	for (i = 0; i < *left; i++)
		dune_page_alloc(1);
	listener = filter_mmap(SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);
	if (listener < 0)
		_exit(5);
	held = listener;
	mine = dune_page_alloc(1);
	if (!grows)
		_exit(8);
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

static void test(const char *what)
{
	*left = -1;
	is(run(), 0, "a child counts");
	ok(*left >= 0 && *left < MANY, "%s has not grown yet", what);
	is(run(), 0, "then both get one");
}

int main(int argc, char **argv)
{
	static const struct dune_config growing = {
		.size = sizeof(growing), .arena = ARENA, .arena_size = MB, .arena_limit = 2 * MB,
	};
	int starts = argc > 1 ? atoi(argv[1]) : 1;
	char number[16];

	left = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	/*
	 * By where the program is loaded, which children share, the block of the
	 * second thread may be what uses the piece up: then somewhere else.
	 */
	*left = -1;
	run();
	if (*left == MANY && starts < STARTS) {
		snprintf(number, sizeof(number), "%d", starts + 1);
		execl("/proc/self/exe", argv[0], number, NULL);
	}
	test("the library's own arena");

	if (mmap(ARENA, MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
		 -1, 0) != ARENA)
		return 1;
	config = &growing;
	test("an arena that grows in its place");
	return tap_end();
}
