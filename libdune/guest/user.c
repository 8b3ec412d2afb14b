// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Copies between the library and memory that the caller of a system call named. A
 * pointer of ring 3 must lead to user memory outside of the supervisor range
 * (dune_user_ok()); ring 0 may name any memory.
 */
#include "guest.h"

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
