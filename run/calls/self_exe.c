// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Calls that name /proc/self/exe and that the kernel would answer with dune-run's file:
 * those for which a kind of argument in syscalls.def (N) is not enough.
 */
#include "calls.h"
#include "program.h"
#include "text.h"
#include "user_memory.h"

#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/inotify.h>

#define NR_FCHMODAT2	452	/* __NR_fchmodat2, since 6.6 */

/* readlink and readlinkat: the arguments of the second are one further on */
void call_readlink(struct dune_tf *tf)
{
	bool at = tf->rax == __NR_readlinkat;
	u64 path = at ? ARG1(tf) : ARG0(tf);
	u64 buffer = at ? ARG2(tf) : ARG1(tf);
	int size = at ? ARG3(tf) : ARG2(tf);

	if (size > 0 && unlikely(names_program(path))) {
		u64 n = text_len(program_name());

		if (n > (u64)size)
			n = size;
		if (user_write(buffer, program_name(), n))
			refuse(tf, -EFAULT);
		else
			dune_syscall_result(tf, n);
		return;
	}
	dune_syscall_result(tf, forward(tf));
}

/* Whether the call of @tf follows its name if that is a symbolic link, by its flags. */
static bool follows(const struct dune_tf *tf)
{
	switch (tf->rax) {
	case __NR_newfstatat:
	case __NR_utimensat:
	case __NR_faccessat2:
	case NR_FCHMODAT2:
		return !(ARG3(tf) & AT_SYMLINK_NOFOLLOW);
	case __NR_statx:
	case __NR_open_tree:
		return !(ARG2(tf) & AT_SYMLINK_NOFOLLOW);
	case __NR_fchownat:
		return !(ARG4(tf) & AT_SYMLINK_NOFOLLOW);
	case __NR_inotify_add_watch:
		return !(ARG2(tf) & IN_DONT_FOLLOW);
	case __NR_linkat:
	case __NR_name_to_handle_at:
		return ARG4(tf) & AT_SYMLINK_FOLLOW;
	}
	return false;
}

/* The calls of follows(): argument 1 is the name. */
void call_at(struct dune_tf *tf)
{
	u64 path = follows(tf) ? followed_name(ARG1(tf)) : ARG1(tf);

	dune_syscall_result(tf, dune_syscall_forward(tf->rax, ARG0(tf), path, ARG2(tf),
						     ARG3(tf), ARG4(tf), ARG5(tf)));
}
