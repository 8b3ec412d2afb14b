// SPDX-License-Identifier: MIT OR Apache-2.0
/* The stub: see by_stub.h. */
#define _GNU_SOURCE
#include "by_stub.h"
#include "tap.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

unsigned int stub_pages = 1;
void *stub_place;

char *stub_map(struct guest *g)
{
	static char *stub;

	if (stub)
		return stub;
	stub = mmap(stub_place, stub_pages * 4096, PROT_READ,
		    MAP_SHARED | (stub_place ? MAP_FIXED : 0), g->fd, DUNE_STUB_OFFSET);
	if (stub == MAP_FAILED)
		bail("mmap of the stub: %s", strerror(errno));
	return stub;
}

void stub_enter(const void *stub, int fd)
{
	asm volatile("jmp *%[stub]"
		     : : [stub] "r"((const char *)stub + DUNE_STUB_ENTER), "b"(fd), "D"(fd), "d"(0)
		     : "memory");
	__builtin_unreachable();
}

void stub_leave(int sig, siginfo_t *info, void *context)
{
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;

	if (r[REG_RIP] % 4096 != STUB_ENTERED) {
		/* The instruction that is executed again ends the process. */
		signal(sig, SIG_DFL);
		return;
	}
	r[REG_RIP] = *(greg_t *)r[REG_RSP];
	r[REG_RSP] += 8;
}
