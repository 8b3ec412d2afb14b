// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * execve and execveat. What the kernel would refuse is refused while the old program
 * still exists and can get the error: path, rights, format, "#!" chains, the loader
 * (here and in load/). Then exec_program() makes the process another program.
 *
 * A set-user-ID or set-group-ID bit and file capabilities have no effect in the
 * sandbox, as under no_new_privs: otherwise dune-run would run with them.
 */
#include "calls.h"
#include "exec.h"
#include "executable.h"
#include "program.h"
#include "script.h"
#include "sys.h"
#include "text.h"
#include "user_memory.h"

#include <asm/unistd.h>
#include <linux/fcntl.h>

static void execute(struct dune_tf *tf, int dir, u64 path, u64 argv, u64 envp, u64 flags)
{
	static char name[PATH_BYTES];
	const char *opened = name;
	bool is_relative, closes;
	long n, fd;

	n = user_string(name, path, sizeof(name));
	if (n < 0) {
		refuse(tf, n);
		return;
	}
	if (n == 0 && !(flags & AT_EMPTY_PATH)) {
		refuse(tf, -ENOENT);
		return;
	}
	is_relative = dir != AT_FDCWD && name[0] != '/';
	if (!is_relative && !(flags & AT_SYMLINK_NOFOLLOW) && is_own_exe(name))
		opened = program_name();
	fd = executable_open(dir, opened, flags);
	if (fd < 0) {
		refuse(tf, fd);
		return;
	}
	closes = is_relative && (SYS2(__NR_fcntl, dir, F_GETFD) & FD_CLOEXEC);
	script_set_name(dir, name, closes);
	dune_syscall_result(tf, exec_program(fd, argv, envp));
}

void call_execve(struct dune_tf *tf)
{
	execute(tf, AT_FDCWD, ARG0(tf), ARG1(tf), ARG2(tf), 0);
}

void call_execveat(struct dune_tf *tf)
{
	u64 flags = ARG4(tf);

	if (flags & ~(u64)(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW)) {
		refuse(tf, -EINVAL);
		return;
	}
	execute(tf, ARG0(tf), ARG1(tf), ARG2(tf), ARG3(tf), flags);
}
