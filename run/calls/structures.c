// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Calls whose structures hold pointers. The structure is copied into the scratch
 * (<dune_copies.h>), the pointers in the copy are checked, and the kernel gets the copy. So the
 * program cannot change it between the check and the call. Another process can, if it may write the
 * memory of this one: docs/security.md has what that gains.
 * (Messages of sockets are in socket_messages.c.)
 */
#include "calls.h"
#include "copies.h"
#include "super_range.h"
#include "user_memory.h"

#include <asm/siginfo.h>
#include <linux/futex.h>
#include <linux/uio.h>

_Static_assert(IOV_LIMIT * sizeof(struct iovec) <= DUNE_SCRATCH_SIZE - DUNE_COPIES_RESERVE,
	       "call_iovec() needs no check of dune_scratch_get()");
_Static_assert(FUTEX_WAITV_MAX * sizeof(struct futex_waitv) <=
	       DUNE_SCRATCH_SIZE - DUNE_COPIES_RESERVE,
	       "forward_waiters() needs no check of dune_scratch_get()");

/*
 * Copy @count buffers from the program's address @from to @v, which is in the scratch, and check
 * them. Returns 0 or the error of the call, which is -EINVAL for a length that the kernel refuses
 * in any vector.
 */
long take_vector(struct iovec *v, u64 from, u64 count)
{
	bool meets = false;
	u64 i;

	if (!count)
		return 0;	/* the kernel does not look at the address */
	if (user_read(v, from, count * sizeof(*v)))
		return -EFAULT;
	for (i = 0; i < count; i++) {
		u64 len = v[i].iov_len;

		if ((long)len < 0)
			return -EINVAL;
		if (len > TRANSFER_LIMIT)
			len = TRANSFER_LIMIT;
		meets |= len && meets_super_range((u64)v[i].iov_base, len);
	}
	return meets ? -EFAULT : 0;
}

/*
 * readv, writev and their variants, and vmsplice: argument 1 is the pointer, argument 2
 * the count, of which the kernel takes the lower half.
 */
void call_iovec(struct dune_tf *tf)
{
	u64 count = (u32)ARG2(tf);
	struct iovec *iov;
	long err;

	if (count > IOV_LIMIT) {
		refuse(tf, -EINVAL);
		return;
	}
	iov = dune_scratch_get(count * sizeof(*iov));
	err = take_vector(iov, ARG1(tf), count);
	if (err) {
		refuse(tf, err);
		return;
	}
	dune_syscall_result(tf, dune_syscall_forward(tf->rax, ARG0(tf), dune_kernel_at(iov), count,
						     ARG3(tf), ARG4(tf), ARG5(tf)));
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
	     in_super_range((u64)event.sigev_value.sival_ptr))) {
		refuse(tf, -EFAULT);
		return;
	}
	dune_syscall_result(tf, dune_syscall_forward(tf->rax, ARG0(tf),
						     scratched(&event, sizeof(event)),
						     0, 0, 0, 0));
}

static void forward_waiters(struct dune_tf *tf, u64 count, u64 limit)
{
	struct futex_waitv *waiters;
	u64 i;

	if (count > limit) {
		refuse(tf, -EINVAL);
		return;
	}
	waiters = dune_scratch_get(count * sizeof(*waiters));
	if (user_read(waiters, ARG0(tf), count * sizeof(*waiters))) {
		refuse(tf, -EFAULT);
		return;
	}
	for (i = 0; i < count; i++) {
		if (in_super_range(waiters[i].uaddr)) {
			refuse(tf, -EFAULT);
			return;
		}
	}
	dune_syscall_result(tf, dune_syscall_forward(tf->rax, dune_kernel_at(waiters), ARG1(tf),
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
