// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Copies from and to the program's memory, from ring 0. The range is checked here;
 * dune_copy() survives faults.
 */
#include "nospec.h"
#include "page.h"
#include "user_memory.h"

#include <dune.h>
#include <linux/errno.h>

/* Set by main.c. */
u64 super_base;

static bool bad_range(u64 p, u64 len)
{
	return meets_super_range(p, len) || len > USER_END || p > USER_END - len;
}

long user_read(void *to, u64 from, u64 len)
{
	if (unlikely(bad_range(from, len)))
		return -EFAULT;
	return dune_copy(to, (const void *)outside_nospec(from), len);
}

long user_write(u64 to, const void *from, u64 len)
{
	if (unlikely(bad_range(to, len)))
		return -EFAULT;
	return dune_copy((void *)outside_nospec(to), from, len);
}

/*
 * Returns 0 if the @len bytes at @from are zero, -E2BIG if not, or -EFAULT. (check_zeros() of
 * libdune/guest/process.c does the same without the check of the range.)
 */
static long check_zeros(u64 from, u64 len)
{
	u64 done, part, i;
	u8 bytes[64];

	for (done = 0; done < len; done += part) {
		part = len - done < sizeof(bytes) ? len - done : sizeof(bytes);
		if (user_read(bytes, from + done, part))
			return -EFAULT;
		for (i = 0; i < part; i++) {
			if (bytes[i])
				return -E2BIG;
		}
	}
	return 0;
}

long user_read_struct(void *to, u64 known, u64 least, u64 from, u64 size)
{
	long err;

	if (size < least)
		return -EINVAL;
	if (size > PAGE_BYTES)
		return -E2BIG;
	if (size <= known)
		return user_read(to, from, size);
	err = check_zeros(from + known, size - known);
	if (err)
		return err;
	return user_read(to, from, known);
}

long user_string(char *to, u64 from, u64 size)
{
	u64 done = 0;

	while (done < size) {
		u64 part = PAGE_BYTES - ((from + done) & (PAGE_BYTES - 1));
		u64 i;

		/* Names are short: copy a little at a time, not the whole page. */
		if (part > 64)
			part = 64;
		if (part > size - done)
			part = size - done;
		if (user_read(to + done, from + done, part))
			return -EFAULT;
		for (i = 0; i < part; i++)
			if (!to[done + i])
				return done + i;
		done += part;
	}
	return -ENAMETOOLONG;
}
