// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * hello: enter Dune mode and print the ring. After dune_enter() the program runs
 * in ring 0 of a guest of its own; printf() and all other functions work as
 * before, since their system calls reach the same kernel.
 *
 * Fails if dune_enter() fails, or if CS does not show ring 3 before it and ring 0
 * afterwards.
 */
#include <dune.h>
#include <stdio.h>

static int ring(void)
{
	unsigned short cs;

	__asm__ volatile("mov %%cs, %0" : "=r" (cs));
	return cs & 3;
}

int main(void)
{
	struct dune_stats stats;
	int before = ring();

	if (dune_enter(NULL)) {
		fprintf(stderr, "hello: dune_enter: %s\n", dune_enter_error());
		return 1;
	}
	printf("hello: was in ring %d, now in ring %d\n", before, ring());
	dune_stats(&stats);
	printf("hello: page tables take %lu KB\n",
	       (unsigned long)stats.table_bytes / 1024);
	if (before != 3 || ring() != 0 || !dune_active()) {
		fprintf(stderr, "hello: FAILED: expected ring 3, then 0\n");
		return 1;
	}
	return 0;
}
