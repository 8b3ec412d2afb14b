// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Memory that the caller of a system call named: checks of pointers, and copies. A pointer of
 * ring 3 must lead to user memory outside of the supervisor range; ring 0 may name any
 * memory.
 */
#include "guest.h"

int dune_user_ok(const void *p, size_t n)
{
	u64 at = (u64)p;

	if (n > USER_END || at > USER_END - n)
		return 0;
	return at >= dune_process.super_base + dune_process.super_size ||
	       at + n <= dune_process.super_base;
}

/*
 * Copies @n bytes from @from in memory of the ring that @tf interrupted. Returns 0, or
 * -EFAULT if that is ring 3 and the memory is not user memory, or if it cannot be read.
 */
long dune_get_user(const struct dune_tf *tf, void *to, u64 from, size_t n)
{
	if (from_ring3(tf) && !dune_user_ok((const void *)from, n))
		return -EFAULT;
	return dune_copy(to, (const void *)from, n);
}

/*
 * Copies @n bytes to @to, with the same check. If it returns -EFAULT, some bytes may have been
 * copied.
 */
long dune_put_user(const struct dune_tf *tf, u64 to, const void *from, size_t n)
{
	if (from_ring3(tf) && !dune_user_ok((const void *)to, n))
		return -EFAULT;
	return dune_copy((void *)to, from, n);
}
