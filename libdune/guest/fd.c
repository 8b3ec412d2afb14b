// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The file descriptors of vCPUs belong to the library: closing one would end the
 * program. Programs do close descriptors that they never opened (between fork
 * and exec, for example), so close(), dup2(), dup3() and close_range() treat those of
 * all threads as if they were not open; all other calls see them. The number of the
 * caller's own vCPU can be the target of dup2() and dup3(): the vCPU moves away. That of
 * another thread's cannot (EBADF), since that thread may be using the number. A descriptor
 * that another thread makes or moves at the same time is not hidden yet.
 *
 * Two limits. A child of clone() with CLONE_FILES and without CLONE_VM shares the table of
 * descriptors, but it and its parent do not know each other's vCPUs. And when a thread has left
 * the common table (unshare(), CLOSE_RANGE_UNSHARE), the numbers of the others' vCPUs are
 * still hidden from it, and its own from them.
 */
#include "guest.h"

#define CLOSE_RANGE_CLOEXEC	4
#define NO_FD			(~0U)

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
	dune_services->move(fd);
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

/*
 * Returns the lowest descriptor of a vCPU from @first on, in the caller's table of
 * descriptors, or NO_FD.
 */
static u32 next_vcpu(const struct dune_thread *t, u32 first)
{
	u64 flags = dune_lock(&dune_process.locks[LOCK_THREADS]);
	const struct dune_thread *other;
	u32 fd, next = NO_FD;

	for (other = dune_process.threads; other; other = other->next) {
		fd = READ_ONCE(other->vcpu);	/* -1, which is NO_FD, without a vCPU */
		if (other->files == t->files && fd >= first && fd < next)
			next = fd;
	}
	dune_unlock(&dune_process.locks[LOCK_THREADS], flags);
	return next;
}

static bool is_vcpu(const struct dune_thread *t, u32 fd)
{
	return fd != NO_FD && next_vcpu(t, fd) == fd;
}

static long close_range(const struct dune_thread *t, u32 first, u32 last, u32 flags)
{
	u32 hidden = next_vcpu(t, first);
	long err = 0;

	if (first > last || (flags & CLOSE_RANGE_CLOEXEC))
		return hc3(__NR_close_range, first, last, flags);
	while (hidden <= last && hidden != NO_FD) {
		if (first < hidden)
			err = hc3(__NR_close_range, first, hidden - 1, flags);
		if (err)
			return err;
		first = hidden + 1;
		hidden = next_vcpu(t, first);
	}
	return first <= last ? hc3(__NR_close_range, first, last, flags) : 0;
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
	u32 nr = tf->rax, fd = tf->rdi, to = tf->rsi;

	if (nr == __NR_close_range)
		return close_range(t, fd, to, tf->rdx);
	if (is_vcpu(t, fd))
		return -EBADF;
	if (nr != __NR_close && is_vcpu(t, to))
		return to == (u32)t->vcpu ? dup_to_vcpu(t, tf) : -EBADF;
	return hc3(nr, tf->rdi, tf->rsi, tf->rdx);
}
