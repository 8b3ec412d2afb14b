// SPDX-License-Identifier: MIT OR Apache-2.0
/* Messages, put together without libc: each function appends to @to at @n. */
#include "host.h"

u64 dune_text(char *to, u64 n, const char *s)
{
	while (*s)
		to[n++] = *s++;
	return n;
}

u64 dune_text_hex(char *to, u64 n, u64 v)
{
	int shift = 60;

	n = dune_text(to, n, "0x");
	while (shift && !(v >> shift))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		to[n++] = "0123456789abcdef"[v >> shift & 15];
	return n;
}

u64 dune_text_number(char *to, u64 n, u32 v)
{
	u32 unit = 1;

	while (v / unit >= 10)
		unit *= 10;
	for (; unit; unit /= 10)
		to[n++] = '0' + v / unit % 10;
	return n;
}
