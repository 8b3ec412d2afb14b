// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program in the sandbox names the supervisor range by pointers in structures: vectors,
 * messages, masks, the arguments of ioctl, execve and socket options, also while another process
 * changes them. Fails when such a call gives anything but the expected error, or when the
 * kernel reads other bytes than those that were checked.
 */
#define _GNU_SOURCE
#include "child.h"
#include "hostile.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of test_race(). The kernel takes no more buffers. */
#define BUFFERS		1024
#define ROUNDS		4000

static void test_vectors(int null)
{
	struct iovec good = { "x", 1 };
	struct iovec bad[2] = { { "x", 1 }, { (void *)WINDOW, 16 } };
	struct iovec wide = { (void *)(SUPER_BASE - 4096), 2 * SUPER_SIZE };
	int fd[2], zero = open("/dev/zero", O_RDWR);

	if (pipe(fd))
		bail("pipe: %s", strerror(errno));
	is(call(SYS_writev, null, (long)&good, 1, 0, 0, 0), 1,
	   "writev of a vector with an address of the program: 1");
	is(call(SYS_writev, null, (long)bad, 2, 0, 0, 0), -EFAULT,
	   "writev of a vector with an address in the supervisor range: EFAULT");
	is(call(SYS_writev, fd[1], (long)&wide, 1, 0, 0, 0), -EFAULT,
	   "writev of a buffer that reaches into the supervisor range: EFAULT");
	is(call(SYS_readv, zero, (long)bad, 2, 0, 0, 0), -EFAULT,
	   "readv to a vector with an address in the supervisor range: EFAULT");
	is(call(SYS_preadv, zero, (long)bad, 2, 0, 0, 0), -EFAULT,
	   "preadv to a vector with an address in the supervisor range: EFAULT");
	is(call(SYS_pwritev2, null, (long)bad, 2, 0, 0, 0), -EFAULT,
	   "pwritev2 of a vector with an address in the supervisor range: EFAULT");
	is(call(SYS_vmsplice, fd[1], (long)bad, 2, 0, 0, 0), -EFAULT,
	   "vmsplice of a vector with an address in the supervisor range: EFAULT");
	is(call(SYS_readv, zero, (long)bad, 5000, 0, 0, 0), -EINVAL,
	   "readv to a vector of 5000 buffers: EINVAL");
	close(fd[0]);
	close(fd[1]);
	close(zero);
}

static void test_messages(int null)
{
	struct iovec good = { "x", 1 };
	struct iovec bad[2] = { { "x", 1 }, { (void *)WINDOW, 16 } };
	struct msghdr m = { .msg_iov = bad, .msg_iovlen = 2 };
	struct mmsghdr mm = { .msg_hdr = m };
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct cmsghdr *c;
	int sk[2];

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, sk))
		bail("socketpair: %s", strerror(errno));
	is(call(SYS_sendmsg, sk[0], (long)&m, 0, 0, 0, 0), -EFAULT,
	   "sendmsg with a vector in the supervisor range: EFAULT");
	is(call(SYS_recvmsg, sk[0], (long)&m, MSG_DONTWAIT, 0, 0, 0), -EFAULT,
	   "recvmsg with a vector in the supervisor range: EFAULT");
	is(call(SYS_sendmmsg, sk[0], (long)&mm, 1, 0, 0, 0), -EFAULT,
	   "sendmmsg with a vector in the supervisor range: EFAULT");
	is(call(SYS_recvmmsg, sk[0], (long)&mm, 1, MSG_DONTWAIT, 0, 0), -EFAULT,
	   "recvmmsg with a vector in the supervisor range: EFAULT");
	m.msg_iov = &good;
	m.msg_iovlen = 1;
	m.msg_name = (void *)WINDOW;
	m.msg_namelen = 100;
	is(call(SYS_sendmsg, sk[0], (long)&m, 0, 0, 0, 0), -EFAULT,
	   "sendmsg with a name in the supervisor range: EFAULT");
	is(call(SYS_recvmsg, sk[0], (long)&m, MSG_DONTWAIT, 0, 0, 0), -EFAULT,
	   "recvmsg with a name in the supervisor range: EFAULT");
	m.msg_name = NULL;
	m.msg_control = (void *)WINDOW;
	m.msg_controllen = 100;
	is(call(SYS_sendmsg, sk[0], (long)&m, 0, 0, 0, 0), -EFAULT,
	   "sendmsg with control data in the supervisor range: EFAULT");
	is(call(SYS_recvmsg, sk[0], (long)&m, MSG_DONTWAIT, 0, 0, 0), -EFAULT,
	   "recvmsg with control data in the supervisor range: EFAULT");
	m.msg_control = control;
	m.msg_controllen = sizeof(control);
	c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	*(int *)CMSG_DATA(c) = hidden_fd();
	is(call(SYS_sendmsg, sk[0], (long)&m, 0, 0, 0, 0), -EBADF,
	   "sendmsg of a hidden descriptor: EBADF");
	*(int *)CMSG_DATA(c) = null;
	is(call(SYS_sendmsg, sk[0], (long)&m, 0, 0, 0, 0), 1,
	   "sendmsg of a descriptor of the program's own: 1");
	close(sk[0]);
	close(sk[1]);
}

static void test_structures(int null)
{
	unsigned long sigset[2] = { WINDOW, 8 };
	struct timespec none = { 0, 0 };
	struct clone_args ca = { .flags = CLONE_PARENT_SETTID, .exit_signal = SIGCHLD,
				 .parent_tid = WINDOW };
	struct { unsigned long val, uaddr; unsigned int flags, r; } w = { 0, WINDOW, 2, 0 };

	is(call(SYS_pselect6, 0, 0, 0, 0, (long)&none, (long)sigset), -EFAULT,
	   "pselect6 with a mask in the supervisor range: EFAULT");
	is(call(SYS_clone3, (long)&ca, sizeof(ca), 0, 0, 0, 0), -EFAULT,
	   "clone3 with parent_tid in the supervisor range: EFAULT");
	is(call(SYS_futex_waitv, (long)&w, 1, 0, 0, 0, 0), -EFAULT,
	   "futex_waitv with a word in the supervisor range: EFAULT");
	is(call(SYS_futex, (long)&none, FUTEX_WAKE_OP, 1, 1, WINDOW, 0), -EFAULT,
	   "futex with its second word in the supervisor range: EFAULT");
	is(call(SYS_prctl, PR_GET_NAME, WINDOW, 0, 0, 0, 0), -EFAULT,
	   "PR_GET_NAME with a name in the supervisor range: EFAULT");
	is(call(SYS_arch_prctl, 0x1003, WINDOW, 0, 0, 0, 0), -EFAULT,
	   "ARCH_GET_FS with a word in the supervisor range: EFAULT");
	is(call(SYS_fcntl, null, F_GETLK, WINDOW, 0, 0, 0), -EFAULT,
	   "F_GETLK with a structure in the supervisor range: EFAULT");
}

/*
 * Masks in the upper half of addresses, where ring 0 has private memory: the runtime must not read
 * them there. The call itself decides about the error, which comes before it waits.
 */
static void test_masks(void)
{
	static const unsigned long where[] = {
		DUNE_PRIVATE_BASE, DUNE_PRIVATE_BASE + 0x100000, 0xffff880000000000,
		0xfffffffffffff000,
	};
	static const struct timespec soon = { 0, 1000000 };
	int epoll = epoll_create1(0);
	struct epoll_event event;

	for (unsigned int i = 0; i < sizeof(where) / sizeof(where[0]); i++) {
		unsigned long at = where[i], pair[2] = { at, 8 };
		const struct {
			const char *name;
			long nr, arg[6];
		} calls[] = {
			{ "rt_sigsuspend", SYS_rt_sigsuspend, { at, 8 } },
			{ "ppoll", SYS_ppoll, { 0, 0, (long)&soon, at, 8 } },
			{ "epoll_pwait", SYS_epoll_pwait, { epoll, (long)&event, 1, 1, at, 8 } },
			{ "epoll_pwait2", SYS_epoll_pwait2,
			  { epoll, (long)&event, 1, (long)&soon, at, 8 } },
			{ "pselect6", SYS_pselect6, { 0, 0, 0, 0, (long)&soon, (long)pair } },
			{ "pselect6 with the pair", SYS_pselect6, { 0, 0, 0, 0, (long)&soon, at } },
		};

		for (unsigned int n = 0; n < sizeof(calls) / sizeof(calls[0]); n++) {
			const long *a = calls[n].arg;

			is(call(calls[n].nr, a[0], a[1], a[2], a[3], a[4], a[5]), -EFAULT,
			   "%s at %#lx: EFAULT", calls[n].name, at);
		}
	}
	close(epoll);
}

static void test_commands(int null)
{
	struct { int len; int pad; unsigned long p; } ifc = { 4096, 0, WINDOW };
	struct { unsigned short len; unsigned long filter; } prog = { 1, WINDOW };
	int inet = socket(AF_INET, SOCK_DGRAM, 0);
	char argument[64] = { 0 };

	is(call(SYS_ioctl, inet, 0x8912, (long)&ifc, 0, 0, 0), -EFAULT,
	   "SIOCGIFCONF with a buffer in the supervisor range: EFAULT");
	is(call(SYS_setsockopt, inet, SOL_SOCKET, SO_ATTACH_FILTER, (long)&prog, 16, 0), -EFAULT,
	   "SO_ATTACH_FILTER with a filter in the supervisor range: EFAULT");
	is(call(SYS_setsockopt, inet, 0, 64, (long)&prog, 16, 0), -ENOPROTOOPT,
	   "setsockopt of a firewall's tables: ENOPROTOOPT");
	is(call(SYS_ioctl, null, 0xc0506401, (long)argument, 0, 0, 0), -ENOTTY,
	   "ioctl with a number that is not known: ENOTTY");
	close(inet);
}

static void test_execve(void)
{
	const char *argv[2] = { "x", NULL };
	const char *bad[2] = { (char *)WINDOW, NULL };

	is(call(SYS_execve, (long)"/bin/true", WINDOW, 0, 0, 0, 0), -EFAULT,
	   "execve with a vector in the supervisor range: EFAULT");
	is(call(SYS_execve, (long)"/bin/true", (long)bad, 0, 0, 0, 0), -EFAULT,
	   "execve with an argument in the supervisor range: EFAULT");
	is(call(SYS_execve, (long)"/bin/true", (long)argv, (long)bad, 0, 0, 0), -EFAULT,
	   "execve with an environment in the supervisor range: EFAULT");
}

/*
 * Before the kernel looks at the number of an option, it finds that the length
 * cannot be read (EFAULT), or that it is too short for a value to be set
 * (EINVAL). So ENOPROTOOPT is the sandbox's, with any configuration of the kernel.
 */
static void test_tcp_options(void)
{
	static const struct { int nr, get, set; const char *name; } options[] = {
		{ 1, EFAULT, EINVAL, "TCP_NODELAY" },
		{ 35, ENOPROTOOPT, ENOPROTOOPT, "TCP_ZEROCOPY_RECEIVE" },
		{ 37, EFAULT, EINVAL, "TCP_TX_DELAY" },
		{ 38, ENOPROTOOPT, ENOPROTOOPT, "TCP_AO_ADD_KEY" },
		{ 39, ENOPROTOOPT, ENOPROTOOPT, "TCP_AO_DEL_KEY" },
		{ 40, ENOPROTOOPT, ENOPROTOOPT, "TCP_AO_INFO" },
		{ 41, ENOPROTOOPT, ENOPROTOOPT, "TCP_AO_GET_KEYS" },
	};
	int tcp = socket(AF_INET, SOCK_STREAM, 0);
	size_t i;

	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		is(call(SYS_getsockopt, tcp, SOL_TCP, options[i].nr, 0, 0, 0),
		   -options[i].get, "getsockopt of %s: %s", options[i].name,
		   strerrorname_np(options[i].get));
		is(call(SYS_setsockopt, tcp, SOL_TCP, options[i].nr, 0, 0, 0),
		   -options[i].set, "setsockopt of %s: %s", options[i].name,
		   strerrorname_np(options[i].set));
	}
	close(tcp);
}

/*
 * Has the runtime put @mark into the window, and returns where it is there: openat2() passes the
 * program's structure to the kernel, which refuses it, as a copy in the window.
 */
static const void *mark_window(const struct open_how *mark)
{
	call(SYS_openat2, AT_FDCWD, (long)"/", (long)mark, sizeof(*mark), 0, 0);
	return memmem((void *)WINDOW, STUB_SIZE - 0x1000, mark, sizeof(*mark));
}

static void spin(unsigned int times)
{
	while (times--)
		__asm__ volatile("pause");
}

/*
 * Two processes share the vector: one makes it bad while the other uses it. If the kernel ever gets
 * other bytes than those that were checked, the call reads the window into the pipe, where the
 * program has a mark. (Other bytes than x are no leak: a pointer that is read while it changes may
 * be part of each, and name other memory of this program.) All buffers but the first have no bytes:
 * they make the check take long.
 */
static void test_race(void)
{
	static const struct open_how mark = { 0, 0x6d61726b6d61726b, 0x6b72616d6b72616d };
	struct iovec *v = shared_alloc(BUFFERS * sizeof(*v));
	static char x[sizeof(mark)] = "fine and public";
	int fd[2], i, leaks = 0, fine = 0, refused = 0;
	const void *in_window = mark_window(&mark);
	char got[sizeof(x)];
	pid_t child;

	ok(in_window, "the window has the program's mark");
	v->iov_base = x;
	v->iov_len = sizeof(x);
	if (pipe(fd))
		bail("pipe: %s", strerror(errno));
	child = fork();
	if (!child)
		for (;;) {
			*(const void *volatile *)&v->iov_base = in_window;
			spin(rand() % 64);
			*(void *volatile *)&v->iov_base = x;
			spin(rand() % 64);
		}
	/* While the child does not run, the vector is the same in each call. */
	for (i = 0; i < ROUNDS || ((!fine || !refused) && i < 100 * ROUNDS); i++) {
		ssize_t n = writev(fd[1], v, BUFFERS);

		if (n <= 0) {
			refused++;
			continue;
		}
		n = read(fd[0], got, sizeof(got));
		leaks += n == sizeof(mark) && !memcmp(got, &mark, n);
		fine++;
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	ok(leaks == 0 && fine > 0 && refused > 0, "a vector that changes all the time never leaks");
	diag("%d written, %d of them a leak, %d refused", fine, leaks, refused);
	ok(in_window && !memcmp(in_window, &mark, sizeof(mark)),
	   "the window has the mark until the end");
}

int main(void)
{
	int null = open("/dev/null", O_RDWR);

	leave_session();
	test_vectors(null);
	test_messages(null);
	test_structures(null);
	test_masks();
	test_commands(null);
	test_execve();
	test_tcp_options();
	test_race();
	return done();
}
