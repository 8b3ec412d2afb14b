// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The special calls (common/special.h) for which guest/ has no function of its own: calls that wait
 * with another mask of signals, and those after which the CPU may be another one.
 */
#include "alone.h"
#include "special.h"

static const u8 actions[SYSCALL_MAX] = {
	SPECIAL_CALLS(ACTION, 0)
};

/*
 * Makes a call that waits with the signal mask at @at, or with its own if that is NULL or cannot be
 * read. A signal that has interrupted the call found the mask of the call.
 */
static long masked_call(struct dune_tf *tf, u64 at)
{
	struct dune_thread *t = dune_self();
	u64 mask;
	bool is_masked = at && !dune_get_user(tf, &mask, at, sizeof(mask));
	long ret = dune_forward_tf(tf, (u32)tf->rax);

	if (is_masked && ret == -EINTR) {
		t->temp_mask = mask & ~UNBLOCKABLE;
		t->temp_mask_on = 1;
		dune_alone_collect(t);
		t->temp_mask_on = 0;
	}
	return ret;
}

/* Returns the address of the mask, from { address, size } at @pair of the program, or 0. */
static u64 mask_in(const struct dune_tf *tf, u64 pair)
{
	u64 p[2];

	return pair && !dune_get_user(tf, p, pair, sizeof(p)) ? p[0] : 0;
}

/* Implements @special of struct dune_services. */
long dune_alone_special(struct dune_tf *tf)
{
	u32 nr = tf->rax;
	long ret;

	switch ((enum action)actions[nr]) {
	case MASK_RDI:
		return masked_call(tf, tf->rdi);
	case MASK_R8:
		return masked_call(tf, tf->r8);
	case MASK_R10:
		return masked_call(tf, tf->r10);
	case MASK_IN_R9:
		return masked_call(tf, mask_in(tf, tf->r9));
	default:
		ret = dune_forward_tf(tf, nr);
		dune_alone_look_at_cpu(dune_self());
		return ret;
	}
}
