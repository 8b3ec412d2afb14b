// SPDX-License-Identifier: MIT OR Apache-2.0
/* clone3() with structures of several sizes: see clone3.h. */
#define _GNU_SOURCE
#include "clone3.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE_BYTES	4096UL
#define EXIT_SIGNAL	32	/* offsetof(struct clone_args, exit_signal) */

/* In each case but those without memory the structure ends where the mapped page does. */
static const struct {
	const char *name;
	unsigned long size;
	unsigned long mapped;	/* bytes of it in the page */
	int last;		/* the last byte in the page */
} cases[CLONE3_CASES] = {
	{ "8 bytes", 8, 8, 0 },
	{ "8 bytes that are not mapped", 8, 0, 0 },
	{ "64 bytes", 64, 64, 0 },
	{ "88 bytes", 88, 88, 0 },
	{ "89 bytes, of which the last is 1", 89, 89, 1 },
	{ "160 bytes, of which the rest is zero", 160, 160, 0 },
	{ "160 bytes, of which the last is 1", 160, 160, 1 },
	{ "160 bytes, of which the last 60 are not mapped", 160, 100, 0 },
	{ "4,096 bytes, of which the rest is zero", 4096, 4096, 0 },
	{ "4,096 bytes, of which the last is 1", 4096, 4096, 1 },
	{ "4,097 bytes that are not mapped", 4097, 0, 0 },
};

struct clone3_result try_clone3(unsigned int n)
{
	struct clone3_result result = { .name = cases[n].name };
	unsigned long mapped = cases[n].mapped, exit_signal = SIGCHLD;
	int status;
	long pid;
	char *page = mmap(NULL, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *args;

	if (page == MAP_FAILED || mprotect(page + PAGE_BYTES, PAGE_BYTES, PROT_NONE)) {
		result.error = -ENOMEM;
		return result;
	}
	args = page + PAGE_BYTES - mapped;
	if (mapped >= EXIT_SIGNAL + sizeof(exit_signal))
		memcpy(args + EXIT_SIGNAL, &exit_signal, sizeof(exit_signal));
	if (cases[n].last)
		page[PAGE_BYTES - 1] = cases[n].last;
	pid = syscall(SYS_clone3, args, cases[n].size);
	if (!pid)
		_exit(13);
	if (pid < 0)
		result.error = -errno;
	else if (waitpid(pid, &status, 0) != pid || status != 13 << 8)
		result.error = -ECHILD;
	munmap(page, 2 * PAGE_BYTES);
	return result;
}
