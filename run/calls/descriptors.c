// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Calls by which the program chooses numbers of descriptors, among which there may be
 * hidden ones.
 */
#include "calls.h"
#include "hidden.h"

#include <asm/unistd.h>
#include <linux/close_range.h>

void call_dup2(struct dune_tf *tf)
{
	if (unlikely(is_hidden(ARG1(tf))) && !hidden_make_way(ARG1(tf))) {
		refuse(tf, -EBADF);
		return;
	}
	dune_syscall_result(tf, forward(tf));
}

/* Close the ranges between the hidden descriptors. */
void call_close_range(struct dune_tf *tf)
{
	u64 first = (u32)ARG0(tf), last = (u32)ARG1(tf);
	u64 flags = ARG2(tf);
	long ret = 0;

	if ((flags & CLOSE_RANGE_CLOEXEC) || first > last) {
		/* The hidden ones are close-on-exec already. */
		dune_syscall_result(tf, forward(tf));
		return;
	}
	while (first <= last) {
		u64 stop = last + 1;	/* the next hidden one, or the end */
		int i;

		for (i = 0; i < HIDDEN_COUNT; i++) {
			int fd = hidden_fd(i);

			if (fd >= 0 && (u64)fd >= first && (u64)fd < stop)
				stop = fd;
		}
		if (stop > first)
			ret = dune_syscall_forward(__NR_close_range, first, stop - 1,
						   flags, 0, 0, 0);
		if (ret < 0)
			break;
		first = stop + 1;
	}
	dune_syscall_result(tf, ret);
}
