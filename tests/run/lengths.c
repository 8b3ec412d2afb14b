// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Gives calls lengths that they do not allow, that they shorten, or of which they take 32 bits.
 * Prints the results. edges.bash fails when they differ natively and in the sandbox.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* A place that is free in every program, far below all other memory. */
#define MEMORY	((char *)0x10000000)
#define SIZE	(1UL << 20)
#define HUGE	0x600000000000		/* bytes; from MEMORY they end below the kernel's half */
#define ALL	-1L
#define INT	(1L << 32)		/* what an int does not have */

static char *const m = MEMORY;

/* The result of a call, with its text. */
#define SHOW(call) do {							\
	long ret_ = (call);						\
	printf("%s: %ld %s\n", #call, ret_, ret_ < 0 ? strerrorname_np(errno) : "");	\
} while (0)

/* The same for a call whose result is not the same in each run. */
#define SHOW_SUCCESS(call) SHOW(((call) < 0) ? -1 : 0)

static void items(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	int ep = epoll_create1(0), pipes[2];
	struct pollfd *p = (void *)m;
	int sem = semget(IPC_PRIVATE, 1, 0600);
	struct sembuf *op = (void *)m;

	if (pipe(pipes) || write(pipes[1], "x", 1) != 1)
		perror("pipe");
	epoll_ctl(ep, EPOLL_CTL_ADD, pipes[0], &e);
	*p = (struct pollfd) { pipes[0], POLLIN, 0 };
	SHOW(syscall(SYS_poll, p, INT + 1, 0));
	SHOW(syscall(SYS_poll, p, ALL, 0));
	SHOW(syscall(SYS_poll, p, INT - 1, 0));
	SHOW(syscall(SYS_ppoll, p, ALL, 0, 0, 8));
	SHOW(syscall(SYS_ppoll, p, INT + 1, 0, 0, 8));
	SHOW(syscall(SYS_epoll_wait, ep, m, ALL, 0));
	SHOW(syscall(SYS_epoll_wait, ep, m, INT + 1, 0));
	SHOW(syscall(SYS_epoll_wait, ep, m, INT / 2, 0));
	SHOW(syscall(SYS_epoll_pwait, ep, m, ALL, 0, 0, 8));
	SHOW(syscall(SYS_epoll_pwait2, ep, m, ALL, 0, 0, 8));
	*op = (struct sembuf) { 0, 1, 0 };
	SHOW(syscall(SYS_semop, sem, op, INT + 1));
	SHOW(syscall(SYS_semop, sem, op, ALL));
	SHOW(syscall(SYS_semop, sem, op, INT - 1));
	SHOW(syscall(SYS_semtimedop, sem, op, ALL, 0));
	semctl(sem, 0, IPC_RMID);
}

static void sockets(void)
{
	int s = socket(AF_INET, SOCK_DGRAM, 0), pair[2];
	struct sock_filter filter = { BPF_RET | BPF_K, 0, 0, 0xffff };
	struct sock_fprog program = { 1, &filter };
	struct iovec v = { m, ALL };
	struct msghdr h = { .msg_iov = &v, .msg_iovlen = 1 };

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		perror("socketpair");
	memset(m, 0, 64);
	SHOW(syscall(SYS_connect, s, m, ALL));
	SHOW(syscall(SYS_connect, s, m, INT / 2));
	SHOW(syscall(SYS_bind, s, m, ALL));
	SHOW(syscall(SYS_setsockopt, s, SOL_SOCKET, SO_REUSEADDR, m, ALL));
	SHOW(syscall(SYS_setsockopt, s, SOL_SOCKET, SO_REUSEADDR, m, INT + 4));
	SHOW(syscall(SYS_setsockopt, s, SOL_SOCKET, SO_ATTACH_FILTER, &program,
		     INT + sizeof(program)));
	SHOW(syscall(SYS_sendto, pair[0], m, 5L, 0, m, ALL));
	SHOW(syscall(SYS_sendto, pair[0], m, 5L, 0, 0L, ALL));
	SHOW(syscall(SYS_recvfrom, pair[1], m, HUGE, MSG_DONTWAIT, 0, 0));
	SHOW(syscall(SYS_recvfrom, pair[1], m, HUGE, MSG_DONTWAIT, 0, 0));
	SHOW(sendmsg(pair[0], &h, 0));
	SHOW(recvmsg(pair[1], &h, MSG_DONTWAIT));
	v.iov_len = 5;
	SHOW(sendmsg(pair[0], &h, 0));
	v.iov_len = HUGE;
	SHOW(recvmsg(pair[1], &h, MSG_DONTWAIT));
	v.iov_len = 5;
	h.msg_control = m;
	h.msg_controllen = 1L << 40;
	SHOW(sendmsg(pair[0], &h, 0));
	h.msg_controllen = 0;
	h.msg_iov = (void *)(1UL << 63);
	h.msg_iovlen = 0;
	SHOW(sendmsg(pair[0], &h, 0));
}

static void files(void)
{
	int f = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct iovec v[3] = { { m, 2 }, { m, HUGE }, { m, 1 } };
	struct iovec negative[2] = { { m, 2 }, { m, ALL } };

	if (write(f, "12345", 5) != 5)
		perror("file");
	symlink("target", "link");
	SHOW(syscall(SYS_pread64, f, m, HUGE, 0));
	SHOW(syscall(SYS_pread64, f, m, ALL, 0));
	SHOW(syscall(SYS_preadv, f, v, 3, 0));
	SHOW(syscall(SYS_preadv, f, v, INT + 3, 0));
	SHOW(syscall(SYS_preadv, f, v, ALL, 0));
	SHOW(syscall(SYS_preadv, f, negative, 2, 0));
	SHOW(syscall(SYS_pwritev, f, negative, 2, 0));
	SHOW(syscall(SYS_readv, f, 1L << 63, 0));
	SHOW(syscall(SYS_writev, f, 1L << 63, INT));
	SHOW_SUCCESS(syscall(SYS_getcwd, m, ALL));
	SHOW_SUCCESS(syscall(SYS_getcwd, m, HUGE));
	SHOW(syscall(SYS_readlink, "link", m, ALL));
	SHOW(syscall(SYS_readlink, "link", m, INT + 3));
	SHOW(syscall(SYS_readlinkat, AT_FDCWD, "link", m, ALL));
	SHOW(syscall(SYS_readlink, "/proc/self/exe", m, ALL));
	SHOW(syscall(SYS_setxattr, "file", "user.x", m, ALL, 0));
	SHOW(syscall(SYS_setxattr, "file", "user.x", m, HUGE, 0));
	SHOW(syscall(SYS_getxattr, "file", "user.none", m, HUGE) < 0);
	SHOW(syscall(SYS_fsetxattr, f, "user.x", m, 70000, 0));
	SHOW(syscall(SYS_getrandom, m, HUGE, 4));
}

static void others(void)
{
	SHOW(syscall(SYS_sethostname, m, ALL));
	SHOW(syscall(SYS_setdomainname, m, ALL));
	SHOW(syscall(SYS_syslog, 3, m, ALL));
	SHOW(syscall(SYS_syslog, 3, m, INT));
	SHOW(syscall(SYS_msgsnd, -1, m, HUGE, 0));
	SHOW(syscall(SYS_add_key, "user", "x", m, HUGE, -3));
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (mmap(m, SIZE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != m)
		perror("memory");
	items();
	sockets();
	files();
	others();
	return 0;
}
