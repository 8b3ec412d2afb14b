// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The functions that the compiler calls for copies and clears of structures.
 * Built with -fno-tree-loop-distribute-patterns, or it would call them here.
 */
#include "memcpy.h"

/* Copies in ascending order, on which memmove() relies. */
void *memcpy(void *to, const void *from, size_t n)
{
	void *ret = to;
	size_t words = n / 8, rest = n % 8;

	asm volatile("rep movsq" : "+D" (to), "+S" (from), "+c" (words) : : "memory");
	if (rest)
		asm volatile("rep movsb" : "+D" (to), "+S" (from), "+c" (rest) : : "memory");
	return ret;
}

void *memmove(void *to, const void *from, size_t n)
{
	const char *source = from;
	char *target = to;

	if (target <= source)
		return memcpy(to, from, n);
	while (n-- > 0)
		target[n] = source[n];
	return to;
}

void *memset(void *to, int c, size_t n)
{
	unsigned long word = (unsigned char)c * 0x0101010101010101UL;
	size_t words = n / 8, rest = n % 8;
	void *ret = to;

	asm volatile("rep stosq" : "+D" (to), "+c" (words) : "a" (word) : "memory");
	if (rest)
		asm volatile("rep stosb" : "+D" (to), "+c" (rest) : "a" (word) : "memory");
	return ret;
}
