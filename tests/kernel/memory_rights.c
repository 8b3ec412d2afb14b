// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The guest has the rights to a page that the process has: none, reading, writing;
 * and the page that a write to the zero page makes. Fails when the guest may do what
 * the process may not, or the reverse, or keeps the zero page, or gets no page any more.
 */
#define _GNU_SOURCE
#include "child.h"
#include "memory.h"
#include "tap.h"

#include <signal.h>
#include <sys/mman.h>

static struct guest g;

static void rights(void)
{
	u64 *p = new_memory(8192), v;

	p[0] = 77;
	ok(access_by(&g, guest_load, p, &v) == 0 && v == 77,
	   "the guest reads a page that the process wrote");
	ok(access_by(&g, store, p, NULL) == 0 && p[0] == STORED,
	   "the process sees what the guest writes to a page");
	mprotect(p, 4096, PROT_READ);
	ok(access_by(&g, guest_load, p, &v) == 0 && v == STORED,
	   "the guest reads a read-only page");
	ok(access_by(&g, store, p, NULL) == SIGSEGV, "a write to a read-only page is SIGSEGV");
	mprotect(p, 4096, PROT_NONE);
	ok(access_by(&g, guest_load, p, NULL) == SIGSEGV, "a read of a PROT_NONE page is SIGSEGV");
	mprotect(p, 4096, PROT_READ | PROT_WRITE);
	ok(access_by(&g, store, p, NULL) == 0, "the guest writes a page that is writable again");
	munmap(p, 8192);
	ok(access_by(&g, guest_load, p, NULL) == SIGSEGV, "a read of an unmapped page is SIGSEGV");
}

#define PAGES	16

/*
 * A fault also makes the entries of the pages around its own, most of which have the same rights.
 * Here each neighbour has others than the page before it.
 */
static void neighbours(void)
{
	char *memory = new_memory(2 * PAGES * 4096), *p;
	bool refused = true, written = true;
	u64 v;
	int i;

	p = (char *)(((u64)memory + PAGES * 4096 - 1) & -(u64)(PAGES * 4096));
	for (i = 0; i < PAGES; i++)
		p[i * 4096] = i;
	for (i = 1; i < PAGES; i += 2)
		mprotect(p + i * 4096, 4096, PROT_READ);
	ok(access_by(&g, guest_load, p, &v) == 0 && !v, "the guest reads a page");
	for (i = 1; i < PAGES; i += 2)
		refused &= access_by(&g, store, p + i * 4096, NULL) == SIGSEGV;
	ok(refused, "it cannot write the read-only pages around it");
	for (i = 0; i < PAGES; i += 2)
		written &= access_by(&g, store, p + i * 4096, NULL) == 0;
	ok(written, "it can write the others");
	munmap(memory, 2 * PAGES * 4096);
}

/* The zero page first, then a page of its own: the guest must not keep the zero page. */
static void zero_page(void)
{
	u64 *p = new_memory(4096), v;

	ok(access_by(&g, guest_load, p, &v) == 0 && v == 0,
	   "a page that was never written reads as zero");
	p[0] = 3;
	ok(access_by(&g, guest_load, p, &v) == 0 && v == 3,
	   "the guest sees what the process writes after the guest read the zero page");
	ok(access_by(&g, store, p, NULL) == 0 && p[0] == STORED,
	   "the process sees what the guest writes after the guest read the zero page");
	munmap(p, 4096);
}

static void nothing(void *arg)
{
	_exit(0);
}

/*
 * Linux does not announce the end of a change at address 0. A mirror that waits for it makes no
 * entry any more below the end of the change, and the guest faults forever.
 */
static void address_zero(void)
{
	u64 *p = new_memory(4096), v;
	void *zero = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0);

	if (zero) {
		skip("this process may map nothing at address 0", "a change of rights there");
		return;
	}
	mprotect(zero, 4096, PROT_READ);
	munmap(zero, 4096);
	*p = 78;
	/* The fork makes the range of the changes in progress as long as the address space. */
	in_child(nothing, NULL, 20);
	ok(access_by(&g, guest_load, p, &v) == 0 && v == 78,
	   "the guest reads a page after a change of rights at address 0");
	munmap(p, 4096);
}

static void by_protect(u64 n)
{
	mprotect((void *)area, 4096, PROT_READ);
	mprotect((void *)area, 4096, PROT_READ | PROT_WRITE);
	area[0] = n;
}

int main(void)
{
	memory_begin(&g, 60);
	rights();
	neighbours();
	zero_page();
	address_zero();
	area = new_memory(4096);
	under_change(&g, "mprotect back and forth", by_protect);
	return memory_end();
}
