// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What a guest does with its private memory (DUNE_ADD_PRIVATE): it reads, writes and executes the
 * pages and has page tables in them. Fails when a page is missing, is not zeroed or does not keep
 * what was written; when an access after the last page, or to an address that no private memory
 * has, does anything but end the run; and when memory of the process whose address is the same
 * number is confused with a page.
 */
#define _GNU_SOURCE
#include "guest_calls.h"
#include "private.h"
#include "tap.h"
#include "uapi.h"
#include "x86.h"

#include <sys/mman.h>

#define PAGES	8

static struct guest g;
static u64 first;	/* guest-physical address of the first page */

/* ---- in the guest ---- */

static u64 sum(void *at)
{
	volatile u64 *p = at;
	u64 total = 0;

	for (u64 i = 0; i < PAGES * 512; i++)
		total += p[i];
	return total;
}

/* The sum of all words; then one word of each page is written. */
static u64 sum_and_write(void *at)
{
	volatile u64 *p = at;
	u64 before = sum(at);

	for (u64 i = 0; i < PAGES; i++)
		p[i * 512 + i] = 0x1234000 + i;
	return before;
}

static u64 execute(void *at)
{
	static const u8 text[] = { 0xb8, 0x2a, 0, 0, 0, 0xc3 };	/* mov $42, %eax; ret */
	volatile u8 *p = at;

	for (u64 i = 0; i < sizeof(text); i++)
		p[i] = text[i];
	return ((u64 (*)(void))at)();
}

/* The top level of the page table, copied to a page, in use from there on. */
static u64 move_tables(void *at)
{
	volatile u64 *p = at;

	for (int i = 0; i < 512; i++)
		p[i] = g.mem->pml4[i];
	write_cr3(first + ((u64)at - PRIVATE_AT));
	p[0x1fe] = 77;	/* a slot of the top level that nothing uses, in the table itself */
	return p[0x1fe];
}

/* ---- in the host ---- */

static void use(void)
{
	u64 more;

	is(private_add(&g, PAGES, &first), 0, "%d pages are added", PAGES);
	private_show(&g, first);
	ok(guest_call(&g, sum_and_write, (void *)PRIVATE_AT) == GUEST_DONE && !g.value,
	   "the pages are zeroed, and the guest writes them");
	ok(guest_call(&g, sum, (void *)PRIVATE_AT) == GUEST_DONE &&
	   g.value == PAGES * 0x1234000 + PAGES * (PAGES - 1) / 2,
	   "the guest reads what it wrote in an earlier run");
	ok(guest_call3(&g, sum, (void *)PRIVATE_AT) == GUEST_DONE && g.value,
	   "ring 3 of the guest reads private memory, too");
	ok(guest_call(&g, execute, (void *)PRIVATE_AT) == GUEST_DONE && g.value == 42,
	   "the guest executes a page");
	ok(guest_call(&g, move_tables, (void *)(PRIVATE_AT + 4096)) == GUEST_DONE &&
	   g.value == 77, "the guest's page table is in a page");

	guest_first_exit(&g, guest_load, PRIVATE_AT + PAGES * 4096);
	ok(private_missing(&g, first + PAGES * 4096), "an access after the last page ends the run");
	is(private_add(&g, 2, &more), 0, "two more pages are added");
	ok(more == first + PAGES * 4096, "the pages that are added follow the others");
	ok(guest_resume(&g) == GUEST_DONE && !g.value,
	   "the guest repeats the access after the last page, and finds a page");
	guest_first_exit(&g, guest_load, PRIVATE_AT + (PAGES + 2) * 4096);
	ok(private_missing(&g, first + (PAGES + 2) * 4096),
	   "an access after the new last page ends the run");
}

/* Pages with contents that the guest may change. */
static void contents(void)
{
	static const struct { u64 words[1024]; } page __attribute__((aligned(4096))) = {
		{ [0] = 5, [511] = 7, [1023] = 11 }
	};
	struct dune_private p = {
		.size = sizeof(p), .pages = 2, .address = (u64)&page,
	};
	char *at;

	is(call(g.fd, DUNE_ADD_PRIVATE, &p), 0, "two pages with contents are added");
	at = (char *)PRIVATE_AT + (p.guest - first);
	ok(guest_call(&g, guest_load, at) == GUEST_DONE && g.value == 5,
	   "the guest reads the first page's first word");
	ok(guest_call(&g, guest_load, at + 8184) == GUEST_DONE && g.value == 11,
	   "the guest reads the second page's last word");
	ok(guest_call(&g, keep_secrets, at) == GUEST_DONE, "the guest writes them");
}

/* Addresses that no part of a guest-physical space has: the run ends, at this address. */
static void nowhere(void)
{
	static const u64 bits[] = { 39, 40, 46, 47, 48, 49, 51 };

	for (unsigned int i = 0; i < sizeof(bits) / sizeof(bits[0]); i++) {
		u64 gpa = (1UL << bits[i]) + (100UL << 30);

		if (bits[i] < 47 && !g.info.granules)
			continue;
		private_show(&g, gpa);
		guest_first_exit(&g, guest_load, PRIVATE_AT);
		/* A reserved bit of a page table is a page fault of the guest. */
		ok(g.run->exit_reason == DUNE_EXIT_HOSTCALL ? g.run->regs.rax != GUEST_CALL_DONE :
		   private_missing(&g, gpa),
		   "the guest reads nothing at guest-physical 2^%lu + 100 GB", bits[i]);
	}
	private_show(&g, first);
}

/* Memory of the process whose address is the same number, if a process has that address. */
static void same_number(void)
{
	volatile u64 *p = mmap((void *)first, 4096, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if ((u64)p != first) {
		skip("no process has that address here", "memory at the same number");
		return;
	}
	guest_call(&g, keep_secrets, (void *)PRIVATE_AT);
	*p = 77;
	/* The next entry flushes, and reads the process's top level again. */
	mprotect((void *)p, 4096, PROT_READ);
	guest_call(&g, count_secrets, (void *)PRIVATE_AT);
	ok(g.value == SECRETS && *p == 77,
	   "the process's memory at an address of the same number is another one");
	munmap((void *)p, 4096);
	guest_call(&g, count_secrets, (void *)PRIVATE_AT);
	is(g.value, SECRETS, "nothing has changed when that memory is unmapped");
}

int main(void)
{
	if (private_begin(&g, 120)) {
		use();
		nowhere();
		same_number();
		contents();
	}
	guest_close(&g);
	return private_end();
}
