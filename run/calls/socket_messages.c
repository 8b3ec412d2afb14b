// SPDX-License-Identifier: MIT OR Apache-2.0
/* Messages of sockets: headers with their vectors and control data. */
#include "calls.h"
#include "copies.h"
#include "hidden.h"
#include "super_range.h"
#include "sys.h"
#include "user_memory.h"

#include <asm/socket.h>
#include <linux/uio.h>

#define SCM_RIGHTS	1	/* the C library's name */

#define CONTROL_LIMIT	65536	/* above any net.core.optmem_max in use */
#define BATCH		16	/* messages of one sendmmsg or recvmmsg */

/* These structures of the kernel are not in its uapi headers. */
struct user_msghdr {
	u64 name;
	s32 name_len;
	u32 pad;
	u64 iov;
	u64 iov_len;
	u64 control;
	u64 control_len;
	u32 flags;
	u32 pad2;
};

struct mmsghdr {
	struct user_msghdr m;
	u32 len;
	u32 pad;
};

struct cmsghdr {
	u64 len;
	s32 level;
	s32 type;
};

/*
 * A hidden descriptor sent to oneself would come back under a new number. @control is in the
 * scratch, where it may change: each length is read once.
 */
static bool sends_hidden(const u8 *control, u64 len)
{
	u64 at = 0;

	while (len - at >= sizeof(struct cmsghdr)) {
		const struct cmsghdr *c = (const void *)(control + at);
		u64 bytes = *(const volatile u64 *)&c->len, step;

		if (bytes < sizeof(*c) || bytes > len - at)
			return false;	/* the kernel refuses it */
		if (c->level == SOL_SOCKET && c->type == SCM_RIGHTS) {
			const int *fds = (const int *)(c + 1);
			u64 n = (bytes - sizeof(*c)) / sizeof(int);

			while (n--)
				if (is_hidden(fds[n]))
					return true;
		}
		step = (bytes + 7) & ~7UL;
		if (step > len - at)
			return false;
		at += step;
	}
	return false;
}

/*
 * Check the header in @m, which is a copy, and give it copies in the scratch of what it
 * points to: the vector, and for sending the control data. -ENOBUFS when the
 * scratch is full. Only the length decides whether there is control data: the kernel
 * sends it from address 0 as from any other address, and a program with
 * CAP_SYS_RAWIO can have memory there.
 */
static long take_message(struct user_msghdr *m, bool sending)
{
	struct iovec *iov;
	long err;

	if (m->iov_len > IOV_LIMIT)
		return -EMSGSIZE;
	if (m->name && in_super_range(m->name))
		return -EFAULT;
	iov = dune_scratch_get(m->iov_len * sizeof(*iov));
	if (!iov)
		return -ENOBUFS;
	err = take_vector(iov, m->iov, m->iov_len);
	if (err)
		return err;
	m->iov = dune_kernel_at(iov);
	if (!m->control_len)
		return 0;
	if (sending && m->control_len > CONTROL_LIMIT)
		return -ENOBUFS;
	if (meets_super_range(m->control, m->control_len))
		return -EFAULT;
	if (sending) {
		u8 *control = dune_scratch_get(m->control_len);

		if (!control)
			return -ENOBUFS;
		if (user_read(control, m->control, m->control_len))
			return -EFAULT;
		if (sends_hidden(control, m->control_len))
			return -EBADF;
		m->control = dune_kernel_at(control);
	}
	return 0;
}

void call_sendmsg(struct dune_tf *tf)
{
	struct user_msghdr m;
	long err;

	if (user_read(&m, ARG1(tf), sizeof(m))) {
		refuse(tf, -EFAULT);
		return;
	}
	err = take_message(&m, true);
	if (err) {
		refuse(tf, err);
		return;
	}
	dune_syscall_result(tf, dune_syscall_forward(tf->rax, ARG0(tf), scratched(&m, sizeof(m)),
						     ARG2(tf), 0, 0, 0));
}

/* The members that the kernel changes in a header when it receives. */
static long give_message(u64 to, const struct user_msghdr *m)
{
	if (user_write(to + offsetof(struct user_msghdr, name_len), &m->name_len,
		       sizeof(m->name_len)) ||
	    user_write(to + offsetof(struct user_msghdr, control_len), &m->control_len,
		       sizeof(m->control_len)) ||
	    user_write(to + offsetof(struct user_msghdr, flags), &m->flags,
		       sizeof(m->flags)))
		return -EFAULT;
	return 0;
}

void call_recvmsg(struct dune_tf *tf)
{
	struct user_msghdr m;
	u64 copy;
	long ret;

	if (user_read(&m, ARG1(tf), sizeof(m))) {
		refuse(tf, -EFAULT);
		return;
	}
	ret = take_message(&m, false);
	if (!ret) {
		copy = scratched(&m, sizeof(m));
		ret = dune_syscall_forward(tf->rax, ARG0(tf), copy, ARG2(tf), 0, 0, 0);
		ret = take_result(&m, copy, sizeof(m), ret);
		if (ret >= 0 && give_message(ARG1(tf), &m))
			ret = -EFAULT;
	}
	dune_syscall_result(tf, ret);
}

/*
 * Make the call with a copy of the @count headers of @batch, which then has the results. Returns
 * -ENOBUFS if there is no room.
 */
static long forward_batch(struct dune_tf *tf, struct mmsghdr *batch, u64 count, u64 timeout)
{
	u64 bytes = count * sizeof(*batch), copy = scratched(batch, bytes);
	long ret;

	if (copy == NOWHERE)
		return -ENOBUFS;
	ret = dune_syscall_forward(tf->rax, ARG0(tf), copy, count, ARG3(tf), timeout, 0);
	return take_result(batch, copy, bytes, count_within(ret, count));
}

/*
 * Copy up to BATCH headers, as many as the scratch holds: fewer messages than
 * asked for is an answer that both calls may give.
 */
static long take_batch(struct mmsghdr *batch, u64 from, u64 count, bool sending)
{
	u64 i;

	if (count > BATCH)
		count = BATCH;
	for (i = 0; i < count; i++) {
		long err = -EFAULT;

		if (!user_read(&batch[i], from + i * sizeof(*batch), sizeof(*batch)))
			err = take_message(&batch[i].m, sending);
		if (err)
			return i ? (long)i : err;
	}
	return i;
}

void call_sendmmsg(struct dune_tf *tf)
{
	struct mmsghdr batch[BATCH];
	long ret, i;

	ret = take_batch(batch, ARG1(tf), (u32)ARG2(tf), true);
	if (ret >= 0)
		ret = forward_batch(tf, batch, ret, 0);
	for (i = 0; i < ret; i++)
		if (user_write(ARG1(tf) + i * sizeof(*batch) +
			       offsetof(struct mmsghdr, len),
			       &batch[i].len, sizeof(batch[i].len)))
			ret = -EFAULT;
	dune_syscall_result(tf, ret);
}

/*
 * Without MSG_WAITFORONE the kernel waits until all messages have arrived. Where
 * the batch is smaller than the program's number, it waits for the batch only.
 */
void call_recvmmsg(struct dune_tf *tf)
{
	struct mmsghdr batch[BATCH];
	long ret, i;

	ret = take_batch(batch, ARG1(tf), (u32)ARG2(tf), false);
	if (ret >= 0)
		ret = forward_batch(tf, batch, ret, ARG4(tf));
	for (i = 0; i < ret; i++) {
		u64 to = ARG1(tf) + i * sizeof(*batch);

		if (give_message(to, &batch[i].m) ||
		    user_write(to + offsetof(struct mmsghdr, len),
			       &batch[i].len, sizeof(batch[i].len)))
			ret = -EFAULT;
	}
	dune_syscall_result(tf, ret);
}
