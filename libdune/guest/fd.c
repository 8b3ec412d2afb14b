// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The vCPU's file descriptor belongs to the library: closing it would end the
 * program. Programs do close descriptors that they never opened (between fork
 * and exec, for example), so close(), dup2(), dup3() and close_range() treat this
 * one as if it were not open; all other calls see it.
 */
#include "guest.h"

#define CLOSE_RANGE_CLOEXEC	4

static long hc3(long nr, long a0, long a1, long a2)
{
	return dune_hypercall(nr, a0, a1, a2, 0, 0, 0);
}

/*
 * Moves the vCPU's descriptor to another number, because the program wants this one. The old
 * number stays open. Returns 0 or an error.
 */
static long move_away(struct dune_thread *t)
{
	long fd = hc3(__NR_fcntl, t->vcpu, F_DUPFD_CLOEXEC, t->vcpu + 1);

	if (fd < 0)
		fd = hc3(__NR_fcntl, t->vcpu, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return fd;
	t->vcpu = fd;
	return 0;
}

int dune_vcpu_fd(void)
{
	return dune_active() ? dune_self()->vcpu : -1;
}

long dune_vcpu_fd_move(void)
{
	struct dune_thread *t = dune_self();
	int old = t->vcpu;
	long err = move_away(t);

	if (err)
		return err;
	hc3(__NR_close, old, 0, 0);
	return t->vcpu;
}

static long close_range(const struct dune_thread *t, u32 first, u32 last, u32 flags)
{
	u32 hidden = t->vcpu;
	long err = 0;

	if (hidden < first || hidden > last || (flags & CLOSE_RANGE_CLOEXEC))
		return hc3(__NR_close_range, first, last, flags);
	if (first < hidden)
		err = hc3(__NR_close_range, first, hidden - 1, flags);
	if (!err && hidden < last)
		err = hc3(__NR_close_range, hidden + 1, last, flags);
	return err;
}

/* Makes dup2() or dup3() to the number that the vCPU has, which moves away first. */
static long dup_to_vcpu(struct dune_thread *t, const struct dune_tf *tf)
{
	int old = t->vcpu;
	long ret = move_away(t);

	if (ret)
		return ret;
	ret = hc3((u32)tf->rax, tf->rdi, tf->rsi, tf->rdx);
	/* A call that failed has left the vCPU at the old number, too. */
	if (ret < 0)
		hc3(__NR_close, old, 0, 0);
	return ret;
}

/* Carries out close(), dup2(), dup3() and close_range(). */
long dune_sys_fd(struct dune_tf *tf)
{
	struct dune_thread *t = dune_self();
	u32 nr = tf->rax, fd = tf->rdi;

	if (nr == __NR_close_range)
		return close_range(t, fd, tf->rsi, tf->rdx);
	if (fd == (u32)t->vcpu)
		return -EBADF;
	if (nr != __NR_close && (u32)tf->rsi == (u32)t->vcpu)
		return dup_to_vcpu(t, tf);
	return hc3(nr, tf->rdi, tf->rsi, tf->rdx);
}
