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
 * Makes a call that waits with the signal mask at @at, or with the thread's own mask if @at is NULL
 * or cannot be read. A signal that interrupts the call is handled with the call's mask, as on
 * Linux.
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

/*
 * Returns the address of the mask, from { address, size } at @pair, or 0. A runtime passes its own
 * copy of the pair (call_pselect6() of run/), which is in the scratch. So the supervisor range is
 * not refused here, only memory that is not the process's.
 */
static u64 mask_in(u64 pair)
{
	u64 p[2];

	if (!pair || pair > USER_END - sizeof(p) || dune_copy(p, (const void *)pair, sizeof(p)))
		return 0;
	return p[0];
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
		return masked_call(tf, mask_in(tf->r9));
	default:
		ret = dune_forward_tf(tf, nr);
		dune_alone_look_at_cpu(dune_self());
		return ret;
	}
}
