// SPDX-License-Identifier: MIT OR Apache-2.0
/* The stub: see by_stub.h. */
#include "by_stub.h"
#include "guest_calls.h"
#include "tap.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

unsigned int stub_pages = 1;

char *stub_map(struct guest *g)
{
	char *stub = mmap(NULL, stub_pages * 4096, PROT_READ, MAP_SHARED, g->fd, DUNE_STUB_OFFSET);

	if (stub == MAP_FAILED)
		bail("mmap of the stub: %s", strerror(errno));
	return stub;
}

int stub_bind(struct guest *g, const void *stub)
{
	struct dune_stub argument = { .size = sizeof(argument), .address = (u64)stub };

	return ioctl(g->fd, DUNE_SET_STUB, &argument) ? -errno : 0;
}

char *stub_open(struct guest *g)
{
	char *stub;
	int err;

	guest_open(g);
	stub = stub_map(g);
	err = stub_bind(g, stub);
	if (err)
		bail("DUNE_SET_STUB: %s", strerror(-err));
	return stub;
}

long stub_enter(const void *stub, int fd)
{
	int rdi = fd, rdx = 0;
	long ret;

	asm volatile("call *%[stub]"
		     : "=&a"(ret), "+D"(rdi), "+d"(rdx)
		     : [stub] "r"((const char *)stub + DUNE_STUB_ENTER), "b"(fd)
		     : "rcx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
	return ret;
}

enum guest_end stub_resume(struct guest *g, const void *stub)
{
	struct dune_run *run = g->run;

	for (;;) {
		g->error = stub_enter(stub, g->fd);
		if (g->error)
			return GUEST_ERROR;
		if (run->exit_reason == DUNE_EXIT_FAULT) {
			(void)*(volatile char *)run->fault_address;
			continue;
		}
		if (run->exit_reason == DUNE_EXIT_INTR) {
			g->intrs++;
			continue;
		}
		if (run->exit_reason != DUNE_EXIT_HOSTCALL)
			return GUEST_EXIT;
		return guest_hostcall(g);
	}
}

enum guest_end stub_call(struct guest *g, const void *stub, u64 (*fn)(void *arg), void *arg)
{
	guest_prepare(g, 0, fn, arg);
	return stub_resume(g, stub);
}
