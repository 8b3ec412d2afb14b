// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Calls whose structures hold pointers. The structure is copied into the
 * runtime, the pointers in the copy are checked, and the kernel gets the copy: so
 * it reads what was checked, whichever process writes to the program's memory.
 * (Messages of sockets are in socket.c.)
 */
#include "calls.h"

#include <asm/siginfo.h>
#include <asm/unistd.h>
#include <linux/futex.h>
#include <linux/keyctl.h>
#include <linux/uio.h>

_Static_assert(IOV_LIMIT * sizeof(struct iovec) <= SCRATCH_BYTES,
	       "call_iovec() needs no check of scratch_get()");
_Static_assert(FUTEX_WAITV_MAX * sizeof(struct futex_waitv) <= SCRATCH_BYTES,
	       "forward_waiters() needs no check of scratch_get()");

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
		if (iov[i].iov_len && meets_super_range((u64)iov[i].iov_base, iov[i].iov_len)) {
			refuse(tf, EFAULT);
			return;
		}
	}
	dune_syscall_result(tf, dune_syscall_forward(tf->rax, ARG0(tf), (u64)iov, count,
						     ARG3(tf), ARG4(tf), ARG5(tf)));
}

/* Sets of descriptors: one bit for each number below argument 0. */
static bool sets_meet_super_range(const struct dune_tf *tf)
{
	u64 bytes = ((u64)(u32)ARG0(tf) + 63) / 64 * 8;

	return meets_super_range(ARG1(tf), bytes) || meets_super_range(ARG2(tf), bytes) ||
	       meets_super_range(ARG3(tf), bytes);
}

void call_select(struct dune_tf *tf)
{
	if (sets_meet_super_range(tf))
		refuse(tf, EFAULT);
	else
		dune_syscall_result(tf, forward(tf));
}

/* One byte for each page of the range. */
void call_mincore(struct dune_tf *tf)
{
	if (meets_super_range(ARG2(tf), ARG1(tf) / PAGE_BYTES + 1))
		refuse(tf, EFAULT);
	else
		dune_syscall_result(tf, forward(tf));
}

/*
 * Three arrays of equally many items. The kernel does not write the status in
 * ascending order, so the guard region does not protect from it.
 */
void call_move_pages(struct dune_tf *tf)
{
	u64 count = ARG1(tf);

	if (count > USER_END / sizeof(u64))
		count = USER_END / sizeof(u64);
	if (meets_super_range(ARG2(tf), count * sizeof(u64)) ||
	    meets_super_range(ARG3(tf), count * sizeof(int)) ||
	    meets_super_range(ARG4(tf), count * sizeof(int)))
		refuse(tf, EFAULT);
	else
		dune_syscall_result(tf, forward(tf));
}

/*
 * Argument 5 points to { pointer to the signal mask, its size }. Libdune makes the
 * call, since it must know the mask that holds while the call waits.
 */
void call_pselect6(struct dune_tf *tf)
{
	u64 theirs = ARG5(tf);
	u64 mask[2];

	if (sets_meet_super_range(tf)) {
		refuse(tf, EFAULT);
		return;
	}
	if (theirs) {
		if (user_read(mask, theirs, sizeof(mask)) || in_super_range(mask[0])) {
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
	     in_super_range((u64)event.sigev_value.sival_ptr))) {
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
		if (in_super_range(waiters[i].uaddr)) {
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

/* Two operations have structures with pointers: as if they were not built in. */
void call_keyctl(struct dune_tf *tf)
{
	switch ((u32)ARG0(tf)) {
	case KEYCTL_CAPABILITIES:	/* clears all of the buffer */
		if (meets_super_range(ARG1(tf), ARG2(tf))) {
			refuse(tf, EFAULT);
			return;
		}
		break;
	case KEYCTL_UPDATE:
	case KEYCTL_DESCRIBE:
	case KEYCTL_READ:
	case KEYCTL_INSTANTIATE:
	case KEYCTL_GET_SECURITY:
		if (meets_super_range(ARG2(tf), ARG3(tf))) {
			refuse(tf, EFAULT);
			return;
		}
		break;
	case KEYCTL_INSTANTIATE_IOV:
	case KEYCTL_DH_COMPUTE:
		refuse(tf, EOPNOTSUPP);
		return;
	}
	dune_syscall_result(tf, forward(tf));
}

/*
 * File systems that are refused as if the kernel was built without them. The
 * binary mount data of NFS is full of pointers. Mount options of 9p (trans=fd) and
 * the mount data of coda name descriptors, which may be hidden ones. The program's
 * own instance of binfmt_misc (in a user name space, since 6.7) chooses an
 * interpreter by the first bytes of a file, which may be those of dune-run's own
 * file: execve would run the interpreter natively.
 */
static bool type_refused(const char *type)
{
	return text_starts(type, "nfs") || text_equal(type, "9p") ||
	       text_equal(type, "coda") || text_equal(type, "binfmt_misc");
}

void call_mount(struct dune_tf *tf)
{
	char type[64];
	u64 name = ARG2(tf);

	if (name) {
		long n = user_string(type, name, sizeof(type));

		if (n < 0 || type_refused(type)) {
			refuse(tf, n == -EFAULT ? EFAULT : ENODEV);
			return;
		}
		name = (u64)type;
	}
	dune_syscall_result(tf, dune_syscall_forward(tf->rax, ARG0(tf), ARG1(tf), name,
						     ARG3(tf), ARG4(tf), 0));
}

void call_fsopen(struct dune_tf *tf)
{
	char type[64];
	long n = user_string(type, ARG0(tf), sizeof(type));

	if (n < 0 || type_refused(type))
		refuse(tf, n == -EFAULT ? EFAULT : ENODEV);
	else
		dune_syscall_result(tf, dune_syscall_forward(tf->rax, (u64)type, ARG1(tf),
							     0, 0, 0, 0));
}
