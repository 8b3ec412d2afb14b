// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The guest has the rights to a page that the process has: none, reading, writing;
 * and the page that a write to the zero page makes. Fails when the guest may do what
 * the process may not, or the reverse, or keeps the zero page.
 */
#define _GNU_SOURCE
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
	zero_page();
	area = new_memory(4096);
	under_change(&g, "mprotect back and forth", by_protect);
	return memory_end();
}
