// SPDX-License-Identifier: MIT OR Apache-2.0
/* Seccomp filters: see filter.h. */
#define _GNU_SOURCE
#include "filter.h"
#include "tap.h"

#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILTERS	6
#define LENGTH	4000	/* instructions of each; the kernel allows 4,096 */

int filter_install(struct sock_filter *code, unsigned short len, unsigned int flags)
{
	struct sock_fprog program = { .len = len, .filter = code };
	int ret = -1;

	if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		ret = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
	if (ret < 0)
		child_fails("a filter cannot be installed: %m");
	return ret;
}

int filter_call(long nr, unsigned int action, unsigned int flags)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	return filter_install(code, FILTER_LEN(code), flags);
}

void filter_slowly(struct sock_filter *policy, unsigned short len, long nr)
{
	static struct sock_filter slow[LENGTH];
	const struct sock_filter other_calls[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_filter multiply = BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, 3);
	const struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);

	memcpy(slow, other_calls, sizeof(other_calls));
	for (unsigned int i = FILTER_LEN(other_calls); i < LENGTH - 1; i++)
		slow[i] = multiply;
	slow[LENGTH - 1] = allow;
	filter_install(policy, len, 0);
	for (int i = 0; i < FILTERS; i++)
		filter_install(slow, LENGTH, 0);
}
