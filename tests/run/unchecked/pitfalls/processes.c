// SPDX-License-Identifier: MIT OR Apache-2.0
/* Processes. See pitfalls.h. */
#define _GNU_SOURCE
#include "pitfalls.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void clone_raw(unsigned int i)
{
	static const u64 flags[] = {
		0, CLONE_VM, CLONE_VM | CLONE_VFORK, CLONE_VM | CLONE_SIGHAND | CLONE_THREAD,
		CLONE_VM | CLONE_FILES, CLONE_FILES, CLONE_FS, CLONE_SETTLS, CLONE_PTRACE,
		CLONE_PARENT, CLONE_VM | CLONE_SIGHAND, CLONE_VM | CLONE_SETTLS,
	};
	struct {
		u64 words[11];
	} args = { { flags[i % COUNT(flags)], 0, 0, 0, SIGCHLD, (u64)buffer, sizeof(buffer),
		     (u64)sled } };
	u64 *stack = (u64 *)(buffer + sizeof(buffer)) - 16;

	random_words(stack, 16);
	RAW6(SYS_clone, flags[i % COUNT(flags)] | SIGCHLD, stack, buffer, buffer, sled, 0);
	RAW(435 /* clone3 */, &args, sizeof(args), 0);
	RAW(SYS_fork, 0, 0, 0);
	RAW(SYS_vfork, 0, 0, 0);
	/* by libdune, which has checks of its own for what it does not support */
	if (!syscall(SYS_clone, (flags[i % COUNT(flags)] & ~CLONE_SETTLS) | SIGCHLD, stack, buffer,
		     buffer, 0))
		_exit(0);
}

static void execute_raw(unsigned int i)
{
	char *argv[] = { "true", NULL };
	int fd = open("/bin/true", O_RDONLY), vcpu = vcpu_number(), own = own_number();

	if (vcpu < 0 || own < 0)
		dprintf(2, "FOUND nothing to attack: vCPU %d, dune-run's file %d\n", vcpu, own);
	if (i & 1)
		RAW(SYS_execve, "/bin/true", argv, argv + 1);
	else
		RAW6(SYS_execveat, fd, "", argv, argv + 1, AT_EMPTY_PATH, 0);
	/* by dune-run, with another file at the number of the vCPU's descriptor */
	if (i & 4)
		RAW(SYS_dup2, i & 1 ? fd : memfd_create("other", 0), vcpu, 0);
	/* by dune-run, with another file or none at the number of its own file */
	if (i & 2)
		RAW(SYS_close, own, 0, 0);
	else
		RAW(SYS_dup2, fd, own, 0);
	execv("/bin/true", argv);
}

void row_clone(void) { try(clone_raw, 12); }
void row_execute(void) { try(execute_raw, 8); }

/*
 * The supervisor of a seccomp filter replaces the descriptor of the file that is executed, before
 * the kernel looks at it. This works only where the process has no other filter with a listener.
 */
void row_replaced_execution(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_execveat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = { COUNT(f), f };
	struct seccomp_notif_addfd replace = { .flags = SECCOMP_ADDFD_FLAG_SETFD };
	struct seccomp_notif_resp answer = { .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
	struct seccomp_notif call = { 0 };
	int listener;

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	listener = RAW(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &p);
	if (listener < 0)
		return;
	if (!fork()) {
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	if (RAW(SYS_ioctl, listener, SECCOMP_IOCTL_NOTIF_RECV, &call))
		return;
	replace.id = call.id;
	replace.srcfd = open("/bin/true", O_RDONLY);
	replace.newfd = call.data.args[0];
	RAW(SYS_ioctl, listener, SECCOMP_IOCTL_NOTIF_ADDFD, &replace);
	answer.id = call.id;
	RAW(SYS_ioctl, listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

void row_robust_list(void)
{
	u64 list[3], entry[2];
	unsigned int i;

	for (i = 0; i < TARGETS; i++) {
		if (!fork()) {
			entry[0] = (u64)list;
			list[0] = i & 1 ? target(i) : (u64)entry;
			list[1] = target(i) - (u64)entry;
			list[2] = target(i + 1);
			RAW(SYS_set_robust_list, i & 2 ? (u64)list : target(i), 24, 0);
			RAW(SYS_set_tid_address, target(i), 0, 0);
			RAW(SYS_exit, 0, 0, 0);
		}
		while (waitpid(-1, NULL, 0) > 0)
			;
	}
}

void row_rseq(void)
{
	static struct {
		u32 cpu_start, cpu;
		u64 cs;
		u32 flags, node, mm, pad;
	} area __attribute__((aligned(32)));
	static struct {
		u32 version, flags;
		u64 start, size, abort;
	} cs __attribute__((aligned(32)));

	memcpy(sled + 28, "\x53\x30\x05\x53", 4);
	cs.start = STUB;
	cs.size = PAGE;
	cs.abort = (u64)sled + 32;
	area.cs = (u64)&cs;
	RAW6(SYS_rseq, &area, 32, 0, 0x53053053, 0, 0);
	area.cs = (u64)&cs;
	work(5);
}
