// SPDX-License-Identifier: MIT OR Apache-2.0
/* Descriptors of all kinds. See attack.h. */
#define _GNU_SOURCE
#include "attack.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

int files[64], files_used;

void keep(int fd)
{
	if (fd < 0)
		return;
	if (files_used < (int)ARRAY_LEN(files))
		files[files_used++] = fd;
	else
		files[below(ARRAY_LEN(files))] = fd;
}

u64 file(void)
{
	if (one_in(12))
		return one_in(2) ? (u64)AT_FDCWD : 3 + below(1100);
	return files_used ? files[below(files_used)] : 1;
}

static void keep_two(int ret, const int *fd)
{
	if (!ret) {
		keep(fd[0]);
		keep(fd[1]);
	}
}

void open_files(void)
{
	static const char * const paths[] = {
		"/dev/null", "/dev/zero", "/dev/full", "/dev/urandom", "/dev/ptmx", "/dev/net/tun",
		"/dev/fuse", "/dev/loop-control", "/dev/rfkill", "/dev/tty0", "/dev/tty1",
		"/dev/vcs",
		"/dev/input/event0", "/dev/input/event1", "/dev/input/event1", "/dev/input/event2",
		"/dev/input/mice", "/dev/uinput", "/dev/rtc0", "/dev/hwrng",
		"/proc/self/maps", "/proc/self/pagemap", "/proc/self/ns/net", "/proc/self/ns/user",
		"/proc/self/ns/mnt", "/proc/self/comm", "/proc/self/clear_refs",
		"/proc/self/oom_score_adj",
		"/proc/sys/kernel/hostname", "/proc/net/tcp", "/dev/autofs", "/dev/btrfs-control",
		"/dev/snapshot", "/dev/userfaultfd", "/dev/vhost-vsock",
	};
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET };
	static const int families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, 40 };
	sigset_t none;
	size_t i;
	int fd[2];

	sigemptyset(&none);
	keep_two(pipe2(fd, O_NONBLOCK), fd);
	keep_two(pipe(fd), fd);
	keep_two(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), fd);
	keep_two(socketpair(AF_UNIX, SOCK_DGRAM, 0, fd), fd);
	for (i = 0; i < 12; i++)
		keep(socket(PICK(families), PICK(types) | (one_in(2) ? SOCK_NONBLOCK : 0),
			    one_in(2) ? 0 : below(24)));
	keep(epoll_create1(0));
	keep(eventfd(1, 0));
	keep(timerfd_create(1, 0));
	keep(signalfd(-1, &none, 0));
	keep(inotify_init1(IN_NONBLOCK));
	keep(syscall(SYS_memfd_create, "m", 0));
	keep(syscall(SYS_pidfd_open, getpid(), 0));
	keep(open("a", O_RDWR | O_CREAT, 0666));
	keep(open(".", O_RDONLY));
	keep(open("a", O_PATH));
	for (i = 0; i < 14; i++) {
		const char *path = PICK(paths);
		int n = open(path, O_RDWR | O_NONBLOCK | O_NOCTTY);

		keep(n >= 0 ? n : open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
	}
}

/* Descriptors that no call of the program opened: fanotify's events have them. */
void do_fanotify(void)
{
	static const char * const paths[] = {
		"/proc/self/mem", "/proc/self/mem", "/dev/null", "a", ".", "/dev/zero",
		"/proc/self/exe", "/dev/mem", "/dev/kvm", "/dev/dune", "/proc/self/maps",
	};
	static const u32 modes[] = { O_RDWR, O_RDWR, O_RDONLY, O_WRONLY, O_RDWR | O_LARGEFILE };
	const char *path = PICK(paths);
	int fd = fanotify_init(FAN_NONBLOCK | (one_in(4) ? below(0x2000) : 0), PICK(modes));
	char events[4096];
	long n, at;

	if (fd < 0)
		return;
	fanotify_mark(fd, FAN_MARK_ADD | (one_in(4) ? FAN_MARK_MOUNT : 0),
		      FAN_OPEN | FAN_ACCESS | FAN_MODIFY | FAN_CLOSE, AT_FDCWD, path);
	keep(open(path, one_in(2) ? O_RDONLY : O_RDWR));
	n = read(fd, events, sizeof(events));
	for (at = 0; at + (long)sizeof(struct fanotify_event_metadata) <= n; ) {
		struct fanotify_event_metadata *e = (void *)(events + at);

		keep(e->fd);
		at += e->event_len ? e->event_len : n;
	}
	scan_descriptors();
	close(fd);
}
