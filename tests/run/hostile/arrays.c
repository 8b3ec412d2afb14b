// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program in the sandbox gives the kernel arrays that begin below the supervisor range and
 * reach into it, and that the kernel does not write in ascending order. Fails when the kernel
 * writes anything before it returns the error.
 */
#define _GNU_SOURCE
#include "hostile.h"
#include "tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BELOW	65536		/* bytes of the arrays that are the program's */
#define MANY	600000		/* items of 4 bytes reach beyond the supervisor range */

static void test_arrays(void)
{
	unsigned char *below = mmap((void *)(SUPER_BASE - BELOW), BELOW, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	void **pages = calloc(MANY, sizeof(*pages));
	long at = (long)below;
	int i, written = 0;

	if (below == MAP_FAILED || !pages)
		bail("memory below the supervisor range: %s", strerror(errno));
	memset(below, 0x55, BELOW);
	is(call(SYS_move_pages, 0, MANY, (long)pages, 0, at, 0), -EFAULT,
	   "move_pages with a status that reaches into the supervisor range: EFAULT");
	is(call(SYS_move_pages, 0, MANY, at, 0, (long)pages, 0), -EFAULT,
	   "move_pages with pages whose array reaches into the supervisor range: EFAULT");
	is(call(SYS_mincore, 0x10000, MANY * 4096L, at, 0, 0, 0), -EFAULT,
	   "mincore with a result that reaches into the supervisor range: EFAULT");
	for (i = 0; i < BELOW; i++)
		written += below[i] != 0x55;
	is(written, 0, "move_pages and mincore are refused before anything is written");
	munmap(below, BELOW);
	free(pages);
}

int main(void)
{
	leave_session();
	test_arrays();
	return done();
}
