// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The top level of the second-level page table, where that table is the kernel's
 * own for the process: a guest's walk never enters the kernel's half of it, and
 * follows when regions of 512 GB, an entry each, are mapped and unmapped. Fails
 * when the error code of a nested fault reveals that the kernel has a page at an
 * address, or when the guest still reads the old contents of such a region, or
 * cannot read the new ones.
 */
#define _GNU_SOURCE
#include "memory.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"
#include "x86.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define REGION		(1UL << 39)	/* no other mapping of the process is in it */
#define LINEAR		(300UL << 39 | 0xffffUL << 48)

static struct guest g;

extern const char root_load[];
asm(".globl root_load\nroot_load: movb (%rax), %al\n\thlt\n");

/* Whether a nested fault at @gpa reports a page; -1: no such fault. */
static int is_present(u64 *entry, u64 gpa)
{
	*entry = (gpa & PTE_ADDRESS) | PTE_P | PTE_W | PTE_A | PTE_D;
	for (int i = 0; i < 50; i++) {
		g.run->regs.rip = (u64)root_load;
		g.run->regs.rax = LINEAR;
		if (guest_run(&g))
			return -1;
		if (g.run->exit_reason == DUNE_EXIT_FAULT &&
		    g.run->fault_address == (gpa & PTE_ADDRESS))
			return g.run->hw_info1 & 1;
		if (g.run->exit_reason != DUNE_EXIT_INTR)
			return -1;
	}
	return -1;
}

static void kernel_half(void)
{
	const char *names[] = { "_text", "_printk", "vcpu_create" };
	u64 *tables;

	if (g.info.vendor != DUNE_VENDOR_SVM) {
		skip("the second level is a mirror here", "the guest's walk of the kernel's half");
		return;
	}
	tables = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	guest_cover(&g, (u64)tables);
	g.mem->pml4[300] = guest_gpa(&g, (u64)tables) | PTE_P | PTE_W;
	tables[0] = guest_gpa(&g, (u64)(tables + 512)) | PTE_P | PTE_W;
	tables[512] = guest_gpa(&g, (u64)(tables + 1024)) | PTE_P | PTE_W;
	guest_prepare_code(&g, NULL);
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		u64 address = kernel_address(names[i]) & 0xffffffffffffUL;

		ok(address && is_present(tables + 1024, address) == 0,
		   "the guest's walk finds no page at the kernel's %s", names[i]);
	}
	ok(is_present(tables + 1024, 1UL << 47) == 0,
	   "the guest's walk finds no page at the start of the kernel's half");
}

static volatile u64 *map_region(void)
{
	void *p = mmap((void *)REGION, 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (p != (void *)REGION)
		bail("mmap at %#lx: %s", REGION, strerror(errno));
	return p;
}

static void come_and_go(void)
{
	bool seen = true, gone = true, touched = true;
	u64 value = 0;

	for (u64 n = 1; n <= 20; n++) {
		volatile u64 *p = map_region();

		if (n % 2)
			*p = n;
		seen &= !access_by(&g, guest_load, p, &value) && value == (n % 2 ? n : 0);
		*p = n + 100;
		touched &= !access_by(&g, guest_load, p, &value) && value == n + 100;
		munmap((void *)p, 4096);
		gone &= access_by(&g, guest_load, p, &value) == SIGSEGV;
	}
	ok(seen, "the guest reads what is in a new region of 512 GB");
	ok(touched, "the guest reads what is written later to a region of 512 GB");
	ok(gone, "the guest reads nothing of a region of 512 GB that is gone");
}

/* The only page of the region is unmapped, and with it the entry of the top level. */
static void map_anew(u64 n)
{
	munmap((void *)area, 4096);
	*map_region() = n;
}

static void under_a_run(void)
{
	area = map_region();
	under_unmapping(&g, "a region of 512 GB that is mapped anew in a run", map_anew,
			env_number("ROOT_ROUNDS", 200));
	munmap((void *)area, 4096);
}

int main(void)
{
	memory_begin(&g, 120);
	guest_cover(&g, REGION);
	kernel_half();
	come_and_go();
	under_a_run();
	return memory_end();
}
