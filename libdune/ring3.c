// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Going to ring 3. dune_ring3_enter() (entry.S) remembers where it was called
 * and loads the frame; a handler of a system call or trap comes back there
 * with dune_ring3_leave().
 */
#include "internal.h"

long dune_ring3(const struct dune_tf *from)
{
	struct dune_tf tf = *from;

	if (tf.rip >= USER_END)
		return -EFAULT;
	tf.cs = USER_CS;
	tf.ss = USER_SS;
	tf.rflags = (tf.rflags & RFLAGS_USER) | RFLAGS_FIXED | RFLAGS_IF;
	return dune_ring3_enter(&tf);
}

int dune_user_ok(const void *p, size_t n)
{
	u64 at = (u64)p;

	if (n > USER_END || at > USER_END - n)
		return 0;
	return at >= dune_process.super_base + dune_process.super_size ||
	       at + n <= dune_process.super_base;
}
