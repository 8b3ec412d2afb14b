// SPDX-License-Identifier: MIT OR Apache-2.0
/* Copies for the kernel: see copies.h. */
#include "copies.h"
#include "memcpy.h"
#include "text.h"

#include <dune.h>

u64 copies_mark(void)
{
	return dune_active() ? dune_copies_mark() : 0;
}

void copies_release(u64 mark)
{
	if (dune_active())
		dune_copies_release(mark);
}

u64 shown(const void *p, u64 len)
{
	if (!dune_active())
		return (u64)p;
	return dune_show(p, len) ?: NOWHERE;
}

u64 shown_string(const char *s)
{
	return shown(s, text_len(s) + 1);
}

u64 scratched(const void *p, u64 len)
{
	void *copy;

	if (!dune_active())
		return (u64)p;
	copy = dune_scratch_get(len);
	if (!copy)
		return NOWHERE;
	memcpy(copy, p, len);
	return (u64)copy;
}

u64 scratched_string(const char *s)
{
	return scratched(s, text_len(s) + 1);
}

u64 result_room(void *p, u64 len)
{
	if (!dune_active())
		return (u64)p;
	return (u64)dune_scratch_get(len) ?: NOWHERE;
}

void take_result(void *p, u64 room, u64 len)
{
	if (room != (u64)p)
		memcpy(p, (const void *)room, len);
}
