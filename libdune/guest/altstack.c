// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The alternate signal stack of a thread, as sigaltstack(2) and the kernel's
 * signal delivery see it.
 */
#include "guest.h"

static bool on_altstack(const struct dune_thread *t, u64 rsp)
{
	if (t->altstack.flags & SS_AUTODISARM)
		return false;
	return rsp > t->altstack.sp && rsp - t->altstack.sp <= t->altstack.size;
}

/* Returns SS_DISABLE, SS_ONSTACK, or 0 if a handler can switch to the stack. */
u32 dune_altstack_flags(const struct dune_thread *t, u64 rsp)
{
	if (!t->altstack.size)
		return SS_DISABLE;
	return on_altstack(t, rsp) ? SS_ONSTACK : 0;
}

/*
 * Does as sigaltstack(2) with @to, called at stack pointer @rsp. Returns 0, -EPERM (the
 * thread is on its alternate stack), -EINVAL (flags) or -ENOMEM (smaller than MINSIGSTKSZ).
 */
long dune_set_altstack(struct dune_thread *t, const struct kstack *to, u64 rsp)
{
	u32 mode = to->flags & ~SS_AUTODISARM;

	if (t->altstack.size && on_altstack(t, rsp))
		return -EPERM;
	if (mode != SS_DISABLE && mode != SS_ONSTACK && mode)
		return -EINVAL;
	if (mode == SS_DISABLE) {
		t->altstack = (struct kstack){ .flags = to->flags };
		return 0;
	}
	if (to->size < MINSIGSTKSZ)
		return -ENOMEM;
	t->altstack = *to;
	return 0;
}

/* Carries out sigaltstack(). */
long dune_sys_sigaltstack(struct dune_tf *tf)
{
	struct dune_thread *t = dune_self();
	struct kstack new, old = t->altstack;
	long err;

	if (tf->rdi && dune_get_user(tf, &new, tf->rdi, sizeof(new)))
		return -EFAULT;
	old.flags = dune_altstack_flags(t, tf->rsp) | (old.flags & SS_AUTODISARM);
	old.pad = 0;
	if (tf->rdi) {
		err = dune_set_altstack(t, &new, tf->rsp);
		if (err)
			return err;
	}
	return tf->rsi ? dune_put_user(tf, tf->rsi, &old, sizeof(old)) : 0;
}
