// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * For the sandbox without checks: which system calls the processes make natively, and what their
 * runtime reports. See watch.h.
 *
 * A seccomp filter, which no process can take off again, sends the other calls than those of the
 * stub and of dune-run's native start to the watcher. The calls that the module carries out for a
 * guest have the RIP of the stub. A call of the i386 ABI is always native: in the guest INT 0x80 is
 * SIGSEGV. So code of the program that runs natively makes such a call, as its memory is full of
 * INT 0x80.
 */
#define _GNU_SOURCE
#include "watch.h"
#include "unchecked.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/dune.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

bool unchecked, unfiltered;
int native_calls = -1;
/* The call that starts dune-run was not seen yet. */
static bool starts;

/* The native start's addresses: LINK_ADDRESS of run/Makefile, and its size at most. */
#define START_HIGH	0x6d75
#define START_LOW	0x00100000
#define START_SIZE	0x100000

/* RIP after each of the stub's two SYSCALL instructions (kernel/dune/stub_code.S), in its page. */
#define AFTER_ENTER	(DUNE_STUB_ENTER + 7)
#define AFTER_CALL	(DUNE_STUB_CALL + 2)

#define LOAD(member)	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define HIGH_OF(member)	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, \
				 offsetof(struct seccomp_data, member) + 4)
#define IF(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), (yes), (no))
#define RETURN(what)	BPF_STMT(BPF_RET | BPF_K, (what))

static struct sock_filter filter[] = {
	LOAD(arch),
	IF(AUDIT_ARCH_X86_64, 0, 14),
	HIGH_OF(instruction_pointer),
	IF(START_HIGH, 0, 4),
	LOAD(instruction_pointer),
	BPF_STMT(BPF_ALU | BPF_SUB | BPF_K, START_LOW),
	BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, START_SIZE, 1, 0),
	RETURN(SECCOMP_RET_ALLOW),
	LOAD(instruction_pointer),
	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xfff),
	IF(AFTER_ENTER, 1, 0),
	IF(AFTER_CALL, 0, 4),
	LOAD(nr),
	IF(SYS_getpid, 0, 3),
	LOAD(args[0]),
	IF(REPORT, 0, 1),
	RETURN(SECCOMP_RET_USER_NOTIF),
	RETURN(SECCOMP_RET_ALLOW),
};

/* The number that the next descriptor gets. */
static int next_descriptor(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

/* In the process that becomes dune-run: its next call is seen by the filter. */
void native_confine(int out)
{
	struct sock_fprog program = { ARRAY_LEN(filter), filter };
	int fd = next_descriptor();

	write(out, &fd, sizeof(fd));
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
		    &program) != fd)
		_exit(125);
}

/* Takes the listener of @pid, which has announced its descriptor's number by @in. */
void native_listen(pid_t pid, int in)
{
	struct timespec step = { 0, 10000000 };
	int pidfd = syscall(SYS_pidfd_open, pid, 0), fd, tries = 500;

	starts = true;
	if (read(in, &fd, sizeof(fd)) != sizeof(fd))
		fail("no listener");
	for (native_calls = -1; native_calls < 0 && tries--; nanosleep(&step, NULL))
		native_calls = syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	if (native_calls < 0)
		fail("pidfd_getfd");
	close(pidfd);
}

static void judge_report(const __u64 *args)
{
	switch ((enum report)args[1]) {
	case REPORT_CALLS:
		record->calls += args[2];
		if ((__u32)args[3] < CALLS_MAX)
			record->by_number[(__u32)args[3]]++;
		break;
	case REPORT_CHANGED:
		finding("changed", "seed %lu: the runtime's memory has changed: word %llu, after "
			"call %llu", record->seed, args[2], args[3]);
		break;
	case REPORT_CODE:
		finding("code", "seed %lu: the runtime's code has changed, after call %llu",
			record->seed, args[2]);
		break;
	case REPORT_RING0:
		finding("ring", "seed %lu: ring 0 was elsewhere: exception %llu at 0x%llx",
			record->seed, args[2], args[3]);
		break;
	}
}

/* All calls that wait. The one by which the watcher's own child becomes dune-run is expected. */
void see_native(void)
{
	struct seccomp_notif_resp answer;
	struct seccomp_notif n;

	for (;;) {
		const struct seccomp_data *d = &n.data;
		struct pollfd ready = { .fd = native_calls, .events = POLLIN };

		if (native_calls < 0 || poll(&ready, 1, 0) <= 0 || !(ready.revents & POLLIN))
			return;
		memset(&n, 0, sizeof(n));
		if (ioctl(native_calls, SECCOMP_IOCTL_NOTIF_RECV, &n)) {
			if (errno == ENOENT || errno == EINTR)
				continue;
			return;
		}
		if (d->arch == AUDIT_ARCH_X86_64 && d->nr == SYS_getpid &&
		    (__u32)d->args[0] == REPORT) {
			judge_report(d->args);
		} else if (starts) {
			starts = false;
		} else {
			finding(d->arch == AUDIT_ARCH_X86_64 ? "native" : "native i386",
				"seed %lu: process %u runs natively: call %d of %s at 0x%llx",
				record->seed, n.pid, d->nr,
				d->arch == AUDIT_ARCH_X86_64 ? "x86-64" : "i386",
				d->instruction_pointer);
			kill(n.pid, SIGKILL);
		}
		memset(&answer, 0, sizeof(answer));
		answer.id = n.id;
		answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		ioctl(native_calls, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
}

/* What a program has written to a file: a secret of the runtime's? */
void see_file(const char *path)
{
	static char contents[1 << 20];
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n;

	if (fd < 0)
		return;
	while ((n = read(fd, contents, sizeof(contents))) > 0) {
		if (!has_secret(contents, n))
			continue;
		finding("file", "seed %lu: the runtime's memory is in %s", record->seed, path);
		/* remove_one() leaves the files of another file system, as an overlay's are */
		unlink(path);
		break;
	}
	close(fd);
}
