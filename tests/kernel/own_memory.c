// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Guests that take away, replace or protect parts of their own process's memory (code,
 * tables, stack, the run page), or access memory that does not allow it. Each runs in a
 * child (isolated.h). Fails when the kernel uses what is gone, when such a guest
 * continues instead of ending by the signal, or when an access is allowed.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "isolated.h"
#include "tap.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static u64 unmap(void *arg)
{
	u64 *what = arg;

	return hypercall3(SYS_munmap, what[0], what[1], 0);
}

static void unmap_code(void)
{
	/*
	 * mov $11, %eax (munmap); mov $4096, %esi; vmmcall; nop; nop; 1: jmp 1b.
	 * RDI is set below.
	 */
	CODE("\xb8\x0b\x00\x00\x00\xbe\x00\x10\x00\x00\x0f\x01\xd9\x90\x90\xeb\xfe");
	guest_prepare_code(&g, page);
	guest_set_state(&g, &g.state);
	g.run->regs.rdi = (u64)page;
	must_end_within(2000);
	guest_resume(&g);
}

static void unmap_tables(void)
{
	u64 what[2] = { (u64)g.mem, sizeof(*g.mem) };

	go(unmap, what);
}

static void unmap_run_page(void)
{
	u64 what[2] = { (u64)g.run, 4096 };

	go(unmap, what);
}

static void unmap_stack(void)
{
	u64 what[2] = { (u64)g.mem->stack, sizeof(g.mem->stack) };

	go(unmap, what);
}

static u64 zap(void *arg)
{
	struct guest *h = arg;

	hypercall3(SYS_madvise, (long)h->mem, sizeof(*h->mem) - 65536, MADV_DONTNEED);
	asm volatile("mov %%cr3, %%rax; mov %%rax, %%cr3; ud2" : : : "rax");
	return 0;
}

/* Tables of zeros: nothing is mapped, so neither is the handler: triple fault. */
static void zero_tables(void)
{
	must_end_within(2000);
	enum guest_end end = guest_call(&g, zap, &g);

	expect(end, end == GUEST_EXIT && g.run->exit_reason == DUNE_EXIT_SHUTDOWN);
}

static u64 over_run_page(void *arg)
{
	struct guest *h = arg;

	return hypercall(SYS_mmap, (long)h->run, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* The kernel keeps its page, although the process has other memory at the address. */
static void replace_run_page(void)
{
	struct guest h = g;

	must_end_within(2000);
	guest_prepare(&g, 0, over_run_page, &h);
	int err = guest_run_to_exit(&g);

	if (err || g.run->exit_reason != DUNE_EXIT_NONE)
		diag("error %d, exit %u", err, g.run->exit_reason);
	_exit(err || g.run->exit_reason != DUNE_EXIT_NONE);
}

static u64 protect_all(void *arg)
{
	struct guest *h = arg;

	hypercall3(SYS_mprotect, (long)h->mem, sizeof(*h->mem), PROT_NONE);
	return 0;
}

static void protect_tables(void) { go(protect_all, &g); }

static void nx_page(void)
{
	u8 *p = map_page(PROT_READ | PROT_WRITE);

	memset(p, 0xcc, 4096);
	guest_prepare_code(&g, p);
	int err = guest_run_to_exit(&g);

	if (err || g.run->exit_reason != DUNE_EXIT_FAULT)
		child_fails("the run did not end in DUNE_EXIT_FAULT");
	if (!(g.run->fault_flags & DUNE_FAULT_EXEC) || (g.run->fault_address & -4096UL) != (u64)p)
		child_fails("the fault is no instruction fetch of the page");
	guest_resume(&g);
}

static void write_text(void) { go(write_byte, (void *)write_text); }

static void read_prot_none(void)
{
	u8 *p = map_page(PROT_NONE);

	go(read_byte, p);
}

static const struct isolated guests[] = {
	{ "unmaps its code", unmap_code, SIGSEGV },
	{ "unmaps its tables", unmap_tables, SIGSEGV },
	{ "unmaps its stack", unmap_stack, SIGSEGV },
	{ "unmaps the run page", unmap_run_page, SIGSEGV },
	{ "maps memory over the run page", replace_run_page, 0 },
	{ "drops its tables (DONTNEED)", zero_tables, 0 },
	{ "protects its tables", protect_tables, SIGSEGV },
	{ "executes an NX page", nx_page, SIGSEGV },
	{ "writes its text", write_text, SIGSEGV },
	{ "reads a PROT_NONE page", read_prot_none, SIGSEGV },
};

int main(int argc, char **argv)
{
	return isolated_main(argc, argv, guests, sizeof(guests) / sizeof(guests[0]));
}
