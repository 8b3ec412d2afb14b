// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Calls whose structures hold pointers. The structure is copied into the
 * runtime, the pointers in the copy are checked, and the kernel gets the
 * copy: what it reads is what was checked, whoever else writes to the
 * program's memory. (Messages of sockets: socket.c.)
 */
#include "calls.h"

#include <asm/siginfo.h>
#include <asm/unistd.h>
#include <linux/futex.h>
#include <linux/keyctl.h>
#include <linux/uio.h>

#define IOV_LIMIT	1024	/* the kernel's UIO_MAXIOV */

/*
 * readv, writev and their kin, vmsplice: pointer in argument 1, count in 2.
 * Small arrays are the rule: one buffer on the stack, no pool.
 */
void call_iovec(struct dune_tf *tf)
{
	u64 count = ARG2(tf), i;
	struct iovec few[8];
	struct iovec *iov = few;

	if (count > IOV_LIMIT) {
		refuse(tf, EINVAL);
		return;
	}
	if (count > ARRAY_LEN(few)) {
		scratch_reset();
		iov = scratch_get(count * sizeof(*iov));
	}
	if (user_read(iov, ARG1(tf), count * sizeof(*iov))) {
		refuse(tf, EFAULT);
		return;
	}
	for (i = 0; i < count; i++) {
		if (iov[i].iov_len && meets_granule((u64)iov[i].iov_base, iov[i].iov_len)) {
			refuse(tf, EFAULT);
			return;
		}
	}
	dune_syscall_result(tf, dune_syscall_forward(tf->rax, ARG0(tf), (u64)iov, count,
						     ARG3(tf), ARG4(tf), ARG5(tf)));
}

/*
 * Argument 5 points to { pointer to the signal mask, its size }. The call is
 * libdune's, which must know the mask that holds while it waits.
 */
void call_pselect6(struct dune_tf *tf)
{
	u64 theirs = ARG5(tf);
	u64 mask[2];

	if (theirs) {
		if (user_read(mask, theirs, sizeof(mask)) || in_granule(mask[0])) {
			refuse(tf, EFAULT);
			return;
		}
		ARG5(tf) = (u64)mask;
	}
	dune_syscall_pass(tf);
	ARG5(tf) = theirs;
}

/* With SIGEV_THREAD the kernel reads a cookie from where sigev_value points. */
void call_mq_notify(struct dune_tf *tf)
{
	struct sigevent event;

	if (!ARG1(tf)) {
		dune_syscall_result(tf, forward(tf));
		return;
	}
	if (user_read(&event, ARG1(tf), sizeof(event)) ||
	    (event.sigev_notify == SIGEV_THREAD &&
	     in_granule((u64)event.sigev_value.sival_ptr))) {
		refuse(tf, EFAULT);
		return;
	}
	dune_syscall_result(tf, dune_syscall_forward(tf->rax, ARG0(tf), (u64)&event,
						     0, 0, 0, 0));
}

static void forward_waiters(struct dune_tf *tf, u64 count, u64 limit)
{
	struct futex_waitv *waiters;
	u64 i;

	scratch_reset();
	if (count > limit) {
		refuse(tf, EINVAL);
		return;
	}
	waiters = scratch_get(count * sizeof(*waiters));
	if (user_read(waiters, ARG0(tf), count * sizeof(*waiters))) {
		refuse(tf, EFAULT);
		return;
	}
	for (i = 0; i < count; i++) {
		if (in_granule(waiters[i].uaddr)) {
			refuse(tf, EFAULT);
			return;
		}
	}
	dune_syscall_result(tf, dune_syscall_forward(tf->rax, (u64)waiters, ARG1(tf),
						     ARG2(tf), ARG3(tf), ARG4(tf), ARG5(tf)));
}

void call_futex_waitv(struct dune_tf *tf)
{
	forward_waiters(tf, (u32)ARG1(tf), FUTEX_WAITV_MAX);
}

void call_futex_requeue(struct dune_tf *tf)
{
	forward_waiters(tf, 2, 2);
}

/* Two operations hold pointers below their arguments: as if not built in. */
void call_keyctl(struct dune_tf *tf)
{
	switch ((u32)ARG0(tf)) {
	case KEYCTL_INSTANTIATE_IOV:
	case KEYCTL_DH_COMPUTE:
		refuse(tf, EOPNOTSUPP);
		return;
	}
	dune_syscall_result(tf, forward(tf));
}

/* The binary mount data of NFS is full of pointers: as without NFS. */
void call_mount(struct dune_tf *tf)
{
	char type[8];

	if (ARG2(tf)) {
		long n = user_string(type, ARG2(tf), sizeof(type));

		if (n >= 0 && text_starts(type, "nfs")) {
			refuse(tf, ENODEV);
			return;
		}
	}
	dune_syscall_result(tf, forward(tf));
}
