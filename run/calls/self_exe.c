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

static void forward_at(struct dune_tf *tf, u64 flags)
{
	u64 path = ARG1(tf);

	if (!(flags & AT_SYMLINK_NOFOLLOW) && unlikely(names_program(path)))
		path = (u64)program_name();
	dune_syscall_result(tf, dune_syscall_forward(tf->rax, ARG0(tf), path, ARG2(tf),
						     ARG3(tf), ARG4(tf), ARG5(tf)));
}

void call_newfstatat(struct dune_tf *tf)
{
	forward_at(tf, ARG3(tf));
}

void call_statx(struct dune_tf *tf)
{
	forward_at(tf, ARG2(tf));
}
