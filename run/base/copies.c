// SPDX-License-Identifier: MIT OR Apache-2.0
/* Copies for the kernel: see copies.h. */
#include "copies.h"
#include "memcpy.h"
#include "text.h"

#include <asm/errno.h>
#include <dune.h>

u64 shown(const void *p, u64 len)
{
	return dune_show(p, len) ?: NOWHERE;
}

u64 shown_string(const char *s)
{
	return shown(s, text_len(s) + 1);
}

u64 scratched(const void *p, u64 len)
{
	void *copy;

	copy = dune_scratch_get(len);
	if (!copy)
		return NOWHERE;
	memcpy(copy, p, len);
	return dune_kernel_at(copy);
}

u64 scratched_string(const char *s)
{
	return scratched(s, text_len(s) + 1);
}

u64 result_room(u64 len)
{
	void *room = dune_scratch_get(len);

	return room ? dune_kernel_at(room) : NOWHERE;
}

long take_result(void *p, u64 room, u64 len, long ret)
{
	return ret >= 0 && dune_copy(p, (const void *)room, len) ? -EFAULT : ret;
}
