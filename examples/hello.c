// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * hello: enter Dune mode and print the ring. After dune_enter() the program runs
 * in ring 0 of a guest of its own; printf() and all other functions work as
 * before, since their system calls reach the same kernel.
 *
 * Prints "hello: ok" at the end. Fails (status 1) if dune_enter() fails, or if CS does not
 * show ring 3 before it and ring 0 afterwards. Status 77: Dune is not available here.
 */
#include <dune.h>
#include <errno.h>
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
	int err, before = ring();

	err = dune_enter(NULL);
	if (err == -ENOENT || err == -ENODEV) {
		fprintf(stderr, "hello: SKIP: %s\n", dune_enter_error());
		return 77;
	}
	if (err) {
		fprintf(stderr, "hello: dune_enter: %s\n", dune_enter_error());
		return 1;
	}
	printf("hello: was in ring %d, now in ring %d\n", before, ring());
	dune_stats(&stats);
	printf("hello: page tables take %lu KB\n", (unsigned long)stats.table_bytes / 1024);
	if (before != 3 || ring() != 0 || !dune_active()) {
		fprintf(stderr, "hello: FAILED: expected ring 3, then 0\n");
		return 1;
	}
	printf("hello: ok\n");
	return 0;
}
