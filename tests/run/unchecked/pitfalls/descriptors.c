// SPDX-License-Identifier: MIT OR Apache-2.0
/* Tracing and descriptors. See pitfalls.h. */
#define _GNU_SOURCE
#include "pitfalls.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/dune.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

void row_ptrace(void)
{
	struct {
		u64 words[27];
	} regs;
	pid_t parent = getpid(), child = fork();
	int status;

	if (!child) {
		RAW6(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0, 0, 0);
		raise(SIGSTOP);
		work(5);
		_exit(0);
	}
	RAW6(SYS_ptrace, PTRACE_SEIZE, child, 0, 0, 0, 0);
	RAW6(SYS_ptrace, PTRACE_ATTACH, child, 0, 0, 0, 0);
	usleep(50000);
	waitpid(child, &status, WUNTRACED | WNOHANG);
	if (!RAW6(SYS_ptrace, PTRACE_GETREGS, child, 0, &regs, 0, 0)) {
		regs.words[16] = (u64)sled;
		RAW6(SYS_ptrace, PTRACE_SETREGS, child, 0, &regs, 0, 0);
	}
	RAW6(SYS_ptrace, PTRACE_POKETEXT, child, STUB, 0x80cd80cd80cd80cd, 0, 0);
	RAW6(SYS_ptrace, PTRACE_CONT, child, 0, 0, 0, 0);
	kill(child, SIGCONT);
	usleep(50000);
	RAW6(SYS_ptrace, PTRACE_ATTACH, parent, 0, 0, 0, 0);
	kill(child, SIGKILL);
}

/* Returns the lowest number of a descriptor whose file's name contains @part, or -1. */
static int number_of(const char *part)
{
	char name[40], link[PATH_MAX + 1];
	int fd;

	for (fd = 0; fd < 1100; fd++) {
		ssize_t n;

		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		n = readlink(name, link, sizeof(link) - 1);
		link[n > 0 ? n : 0] = 0;
		if (strstr(link, part))
			return fd;
	}
	return -1;
}

int vcpu_number(void)
{
	return number_of("[dune-vcpu");
}

int own_number(void)
{
	return number_of("/dune-run");
}

static void vcpu_call(unsigned int i)
{
	static const u64 offsets[] = { 0, PAGE, 2 * PAGE, 3 * PAGE, 1UL << 32 };
	int vcpu = vcpu_number(), other = memfd_create("other", 0);
	u64 argument[64];
	unsigned int n;

	memset(argument, 0, sizeof(argument));
	switch (i % 8) {
	case 0:		/* the file in the vCPU's place returns an offset that the program chose */
		ftruncate(other, 1UL << 40);
		RAW(SYS_lseek, other, rand() & 1 ? (u64)sled & 0xffffffffff : SYS_execve, SEEK_SET);
		RAW(SYS_dup2, other, vcpu, 0);
		break;
	case 1:
		RAW(SYS_close, vcpu, 0, 0);
		break;
	case 2:
		for (n = 0; n < 64; n++) {
			random_words(argument, 64);
			argument[0] = n;
			RAW(SYS_ioctl, vcpu, 0xde00 | n, argument);
			RAW(SYS_ioctl, vcpu, 0xc000de00 | n | (8 * (rand() % 60)) << 16, argument);
			RAW(SYS_ioctl, vcpu, 0x4000de00 | n | (8 * (rand() % 60)) << 16, argument);
		}
		break;
	case 3:
		for (n = 0; n < 2 * COUNT(offsets); n++) {
			RAW6(SYS_mmap, n & 1 ? 0 : SCRATCH, PAGE, n % 4 < 2 ? 7 : 5,
			     MAP_SHARED | (n & 1 ? 0 : MAP_FIXED), vcpu, offsets[n / 2]);
			RAW6(SYS_mmap, 0, STUB_SIZE, 3, MAP_PRIVATE, vcpu, offsets[n / 2]);
		}
		break;
	case 4:
		for (n = 0; n < 4; n++)
			RAW(SYS_lseek, vcpu, n & 1 ? (u64)sled : FRAMES, n);
		RAW(SYS_read, vcpu, buffer, PAGE);
		RAW(SYS_write, vcpu, buffer, PAGE);
		break;
	case 5:		/* the parent's vCPU in the place of its own */
		n = RAW(SYS_pidfd_getfd, RAW(SYS_pidfd_open, getppid(), 0, 0), vcpu, 0);
		RAW(SYS_ioctl, n, DUNE_RENEW_VCPU, 0);
		RAW(SYS_lseek, n, 0, 0);
		RAW(SYS_dup2, n, vcpu, 0);
		break;
	case 6:		/* a new address space of the device's */
		n = RAW6(SYS_openat, AT_FDCWD, "/dev/dune", O_RDWR, 0, 0, 0);
		RAW(SYS_ioctl, n, DUNE_CREATE_VCPU, argument);
		RAW(SYS_dup2, n, vcpu, 0);
		break;
	case 7:
		RAW(SYS_close_range, 3, ~0U, 0);
		RAW(SYS_unshare, 0x400, 0, 0);
		break;
	}
}

void row_vcpu(void)
{
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	try(vcpu_call, 16);
}

void row_vcpu_received(void)
{
	union {
		struct cmsghdr h;
		char room[CMSG_SPACE(sizeof(int))];
	} c = { .h = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec v = { buffer, 1 };
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c),
	};
	int ends[2], vcpu = vcpu_number();

	socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
	if (!fork()) {
		memcpy(CMSG_DATA(&c.h), &vcpu, sizeof(vcpu));
		RAW(SYS_sendmsg, ends[0], &m, 0);
		work(3);
		_exit(0);
	}
	RAW(SYS_recvmsg, ends[1], &m, 0);
	memcpy(&vcpu, CMSG_DATA(&c.h), sizeof(vcpu));
	RAW(SYS_lseek, vcpu, 0, 0);
	RAW(SYS_ioctl, vcpu, DUNE_RUN, 0);
	RAW(SYS_dup2, vcpu, vcpu_number(), 0);
	work(2);
}
