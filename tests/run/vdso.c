// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Prints whether the vDSO's functions work, or the system calls in their place. A helper of
 * vdso.bash, not a test.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <time.h>

int main(void)
{
	struct timespec t;
	unsigned int cpu;

	printf("clock_gettime: %d\n", clock_gettime(CLOCK_MONOTONIC, &t));
	printf("getcpu: %d\n", getcpu(&cpu, NULL));
	printf("time: %d\n", time(NULL) > 0);
	return 0;
}
