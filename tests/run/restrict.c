// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * restrict mdwe|filter PROGRAM ARGS: run a program that may not make memory
 * executable: by prctl(PR_SET_MDWE), or by a seccomp filter that is systemd's
 * of MemoryDenyWriteExecute=. Exit status 77: the kernel has no such thing.
 *
 * restrict fstatfs|late-fstatfs|late-fstat|getfl|robust|writable PROGRAM ARGS: run a program
 * under a seccomp filter that denies one call with EPERM: fstatfs, fstatfs or fstat of a
 * descriptor from LATE on, fcntl(F_GETFL), get_robust_list,
 * mprotect(PROT_READ | PROT_WRITE). (libc itself calls newfstatat in place of fstat.)
 *
 * A helper of vdso.bash and hostile/denied.bash, not a test.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SET_MDWE		65	/* PR_SET_MDWE, since 6.3 */
#define REFUSE_EXEC_GAIN	1

#define LATE			8	/* no program that starts has as many files open */

#define LOAD(member)	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define IF(value, skip)	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)
#define IF_FROM(value, skip)	BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, value, 0, skip)
#define HAS(bits)	BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits)
#define RETURN(value)	BPF_STMT(BPF_RET | BPF_K, value)

static int install(struct sock_filter *code, unsigned short len)
{
	struct sock_fprog program = { len, code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int filter(void)
{
	static struct sock_filter code[] = {
		LOAD(nr),
		IF(SYS_mmap, 4),
		LOAD(args[2]), HAS(PROT_WRITE | PROT_EXEC), IF(PROT_WRITE | PROT_EXEC, 1),
		RETURN(SECCOMP_RET_ERRNO | EPERM),
		LOAD(nr),
		IF(SYS_mprotect, 4),
		LOAD(args[2]), HAS(PROT_EXEC), IF(PROT_EXEC, 1),
		RETURN(SECCOMP_RET_ERRNO | EPERM),
		RETURN(SECCOMP_RET_ALLOW),
	};

	return install(code, sizeof(code) / sizeof(code[0]));
}

static int deny(int nr)
{
	struct sock_filter code[] = {
		LOAD(nr), IF(nr, 1), RETURN(SECCOMP_RET_ERRNO | EPERM),
		RETURN(SECCOMP_RET_ALLOW),
	};

	return install(code, sizeof(code) / sizeof(code[0]));
}

static int deny_late(int nr)
{
	struct sock_filter code[] = {
		LOAD(nr), IF(nr, 3),
		LOAD(args[0]), IF_FROM(LATE, 1), RETURN(SECCOMP_RET_ERRNO | EPERM),
		RETURN(SECCOMP_RET_ALLOW),
	};

	return install(code, sizeof(code) / sizeof(code[0]));
}

static int deny_getfl(void)
{
	static struct sock_filter code[] = {
		LOAD(nr), IF(SYS_fcntl, 3),
		LOAD(args[1]), IF(F_GETFL, 1), RETURN(SECCOMP_RET_ERRNO | EPERM),
		RETURN(SECCOMP_RET_ALLOW),
	};

	return install(code, sizeof(code) / sizeof(code[0]));
}

static int deny_writable(void)
{
	static struct sock_filter code[] = {
		LOAD(nr), IF(SYS_mprotect, 3),
		LOAD(args[2]), IF(PROT_READ | PROT_WRITE, 1), RETURN(SECCOMP_RET_ERRNO | EPERM),
		RETURN(SECCOMP_RET_ALLOW),
	};

	return install(code, sizeof(code) / sizeof(code[0]));
}

static int restrict_self(const char *how)
{
	if (!strcmp(how, "mdwe"))
		return prctl(SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0);
	if (!strcmp(how, "fstatfs"))
		return deny(SYS_fstatfs);
	if (!strcmp(how, "late-fstatfs"))
		return deny_late(SYS_fstatfs);
	if (!strcmp(how, "late-fstat"))
		return deny_late(SYS_fstat);
	if (!strcmp(how, "getfl"))
		return deny_getfl();
	if (!strcmp(how, "robust"))
		return deny(SYS_get_robust_list);
	if (!strcmp(how, "writable"))
		return deny_writable();
	return filter();
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	if (restrict_self(argv[1]))
		return 77;
	execv(argv[2], argv + 2);
	perror(argv[2]);
	return 126;
}
