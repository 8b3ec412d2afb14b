// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * restrict HOW PROGRAM ARGS: run a program with a restriction, which is
 *
 *	mdwe		memory cannot be made executable, by prctl(PR_SET_MDWE). Exit status
 *			77: the kernel does not have that
 *	filter		the same by a seccomp filter: that of systemd's MemoryDenyWriteExecute=
 *
 * or a seccomp filter that denies one call with EPERM:
 *
 *	fstatfs, robust, random	fstatfs, get_robust_list, getrandom
 *	late-fstatfs, late-fstat	the call for descriptors from LATE on (libc itself calls
 *			newfstatat in place of fstat)
 *	getfl		fcntl(F_GETFL)
 *	getname		prctl(PR_GET_NAME)
 *	writable	mprotect(PROT_READ | PROT_WRITE)
 *
 * or, for "odd", a filter that answers getppid() with 512, a number that the kernel uses for calls
 * that it makes again; or, for "long", one whose supervisor answers readlinkat() with a megabyte.
 *
 * A helper of vdso.bash and hostile/denied.bash, not a test.
 */
#define _GNU_SOURCE
#include "filter.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SET_MDWE		65	/* PR_SET_MDWE, since 6.3 */
#define REFUSE_EXEC_GAIN	1

#define LATE			8	/* no program that starts has as many files open */

#define DENIED		(SECCOMP_RET_ERRNO | EPERM)

#define LOAD(member)	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define IF(value, skip)	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)
#define IF_FROM(value, skip)	BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, value, 0, skip)
#define HAS(bits)	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits)
#define RETURN(value)	BPF_STMT(BPF_RET | BPF_K, value)

static void deny_write_and_execute(void)
{
	struct sock_filter code[] = {
		LOAD(nr),
		IF(SYS_mmap, 4),
		LOAD(args[2]), HAS(PROT_WRITE | PROT_EXEC), IF(PROT_WRITE | PROT_EXEC, 1),
		RETURN(DENIED),
		LOAD(nr),
		IF(SYS_mprotect, 4),
		LOAD(args[2]), HAS(PROT_EXEC), IF(PROT_EXEC, 1),
		RETURN(DENIED),
		RETURN(SECCOMP_RET_ALLOW),
	};

	filter_install(code, FILTER_LEN(code), 0);
}

/* Deny a call if the argument that @load loads fulfils @condition, which else skips one. */
static void deny_if(int nr, struct sock_filter load, struct sock_filter condition)
{
	struct sock_filter code[] = {
		LOAD(nr), IF(nr, 3),
		load, condition, RETURN(DENIED),
		RETURN(SECCOMP_RET_ALLOW),
	};

	filter_install(code, FILTER_LEN(code), 0);
}

static void deny_late(int nr)
{
	deny_if(nr, (struct sock_filter)LOAD(args[0]), (struct sock_filter)IF_FROM(LATE, 1));
}

/* The supervisor of the filter with @listener, until its parent ends. */
static void answer(int listener)
{
	struct seccomp_notif call = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call)) {
		struct seccomp_notif_resp result = { .id = call.id, .val = 1 << 20 };

		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &result);
		memset(&call, 0, sizeof(call));
	}
	_exit(0);
}

/* The process itself has a child that answers its calls. */
static void forge_lengths(void)
{
	int listener = filter_call(SYS_readlinkat, SECCOMP_RET_USER_NOTIF,
				   SECCOMP_FILTER_FLAG_NEW_LISTENER);

	if (!fork())
		answer(listener);
	close(listener);
}

/* Returns false if @how is unknown, or the kernel lacks it. */
static bool restrict_self(const char *how)
{
	if (!strcmp(how, "mdwe"))
		return !prctl(SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0);
	if (!strcmp(how, "filter"))
		deny_write_and_execute();
	else if (!strcmp(how, "fstatfs"))
		filter_call(SYS_fstatfs, DENIED, 0);
	else if (!strcmp(how, "robust"))
		filter_call(SYS_get_robust_list, DENIED, 0);
	else if (!strcmp(how, "random"))
		filter_call(SYS_getrandom, DENIED, 0);
	else if (!strcmp(how, "odd"))
		filter_call(SYS_getppid, SECCOMP_RET_ERRNO | 512, 0);
	else if (!strcmp(how, "long"))
		forge_lengths();
	else if (!strcmp(how, "late-fstatfs"))
		deny_late(SYS_fstatfs);
	else if (!strcmp(how, "late-fstat"))
		deny_late(SYS_fstat);
	else if (!strcmp(how, "getfl"))
		deny_if(SYS_fcntl, (struct sock_filter)LOAD(args[1]),
			(struct sock_filter)IF(F_GETFL, 1));
	else if (!strcmp(how, "getname"))
		deny_if(SYS_prctl, (struct sock_filter)LOAD(args[0]),
			(struct sock_filter)IF(PR_GET_NAME, 1));
	else if (!strcmp(how, "writable"))
		deny_if(SYS_mprotect, (struct sock_filter)LOAD(args[2]),
			(struct sock_filter)IF(PROT_READ | PROT_WRITE, 1));
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	if (!restrict_self(argv[1]))
		return 77;
	execv(argv[2], argv + 2);
	perror(argv[2]);
	return 126;
}
