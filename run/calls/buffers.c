// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Calls with buffers whose length syscalls.def cannot express: it is not the next
 * argument, or not in its unit.
 */
#include "calls.h"
#include "copies.h"
#include "page.h"
#include "super_range.h"
#include "user_memory.h"

#include <linux/keyctl.h>

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
		refuse(tf, -EFAULT);
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
		refuse(tf, -EFAULT);
		return;
	}
	if (theirs) {
		if (user_read(mask, theirs, sizeof(mask)) || in_super_range(mask[0])) {
			refuse(tf, -EFAULT);
			return;
		}
		ARG5(tf) = scratched(mask, sizeof(mask));
	}
	dune_syscall_pass(tf);
	ARG5(tf) = theirs;
}

/* One byte for each page of the range. */
void call_mincore(struct dune_tf *tf)
{
	if (meets_super_range(ARG2(tf), ARG1(tf) / PAGE_BYTES + 1))
		refuse(tf, -EFAULT);
	else
		dune_syscall_result(tf, forward(tf));
}

/*
 * Three arrays of equally many items. The kernel does not write the status in
 * ascending order, so a check of its start would not be enough.
 */
void call_move_pages(struct dune_tf *tf)
{
	u64 count = ARG1(tf);

	if (count > USER_END / sizeof(u64))
		count = USER_END / sizeof(u64);
	if (meets_super_range(ARG2(tf), count * sizeof(u64)) ||
	    meets_super_range(ARG3(tf), count * sizeof(int)) ||
	    meets_super_range(ARG4(tf), count * sizeof(int)))
		refuse(tf, -EFAULT);
	else
		dune_syscall_result(tf, forward(tf));
}

/*
 * Two operations have structures that hold pointers. They are refused as if the kernel
 * was built without them.
 */
static long check_keyctl(const struct dune_tf *tf)
{
	switch ((u32)ARG0(tf)) {
	case KEYCTL_CAPABILITIES:	/* clears all of the buffer */
		return meets_super_range(ARG1(tf), ARG2(tf)) ? -EFAULT : 0;
	case KEYCTL_UPDATE:
	case KEYCTL_DESCRIBE:
	case KEYCTL_READ:
	case KEYCTL_INSTANTIATE:
	case KEYCTL_GET_SECURITY:
		return meets_super_range(ARG2(tf), ARG3(tf)) ? -EFAULT : 0;
	case KEYCTL_INSTANTIATE_IOV:
	case KEYCTL_DH_COMPUTE:
		return -EOPNOTSUPP;
	}
	return 0;
}

void call_keyctl(struct dune_tf *tf)
{
	long err = check_keyctl(tf);

	if (err)
		refuse(tf, err);
	else
		dune_syscall_result(tf, forward(tf));
}
