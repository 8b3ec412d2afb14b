// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * dune_pt_protect() interrupted at each of its instructions by a handler that calls
 * it, too. Fails when the page that was asked for keeps its rights, when another
 * page gets them, or when the interrupted call leaves the calling thread's record
 * of the last table wrong, so that a later call changes another page.
 */
#include <string.h>
#include <sys/mman.h>
#include "rings.h"
#include "step.h"
#include "tap.h"
#include "x86.h"

/* Pages 0 to 3 of each of three tables of 4 KB pages. */
#define TABLES	3
#define PAGES	4

static dune_pte *root;
static uint64_t start;			/* address of the first table's first page */
static volatile int steps, at_step;	/* counted; the one at which the handler acts */
static volatile uint64_t other;		/* the handler's page */

static uint64_t page(int table, int n)
{
	return start + table * MB2 + n * PAGE;
}

GPR_ONLY static void on_step(struct dune_tf *tf)
{
	(void)tf;
	if (++steps == at_step)
		dune_pt_protect(root, other, PAGE, DUNE_PT_RO);
}

/* Protect a page, single-stepped. */
static void protect_stepped(uint64_t va)
{
	steps = 0;
	step_on();
	dune_pt_protect(root, va, PAGE, DUNE_PT_RO);
	step_off();
}

/* A bit for each of the pages that can be written. */
static unsigned int writable(void)
{
	unsigned int bits = 0;
	int i;

	for (i = 0; i < TABLES * PAGES; i++) {
		if (*dune_pt_entry(root, page(i / PAGES, i % PAGES), NULL) & DUNE_PTE_W)
			bits |= 1U << i;
	}
	return bits;
}

static unsigned int bit(int table, int n)
{
	return 1U << (table * PAGES + n);
}

/*
 * Protect page 0 of table 0 after a page of table @before was used; at one of the
 * steps the handler protects page 1 of table @handlers. Then protect page 2 of
 * table 0. Counts the steps at which the result is wrong.
 */
static void interrupt(int before, int handlers)
{
	unsigned int want = (1U << TABLES * PAGES) - 1;
	int i, bad = 0, worst = 0;

	want &= ~(bit(0, 0) | bit(handlers, 1) | bit(0, 2));
	other = page(handlers, 1);
	for (at_step = 1; ; at_step++) {
		for (i = 0; i < TABLES * PAGES; i++)
			dune_pt_protect(root, page(i / PAGES, i % PAGES), PAGE, DUNE_PT_RW);
		dune_pt_protect(root, page(before, 3), PAGE, DUNE_PT_RW);
		protect_stepped(page(0, 0));
		dune_pt_protect(root, page(0, 2), PAGE, DUNE_PT_RO);
		if (steps < at_step)
			break;
		if (writable() != want) {
			bad++;
			worst = at_step;
		}
	}
	is(bad, 0, "table %d before, the handler's page in table %d, %d steps", before,
	   handlers, at_step);
	if (bad)
		diag("last wrong at step %d", worst);
	ok(at_step > 20, "the call was interrupted at each step");
}

int main(void)
{
	char *memory = mmap(NULL, (TABLES + 1) * MB2, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		bail("mmap: %m");
	must_enter(NULL);
	root = dune_pt_root();
	start = ((uint64_t)memory + MB2 - 1) & ~(MB2 - 1);
	is(dune_pt_split(root, start, TABLES * MB2, PAGE), 0, "the three tables are split");
	dune_trap_set(X86_TRAP_DB, on_step, 0);
	interrupt(0, 0);
	interrupt(0, 1);
	interrupt(1, 0);
	interrupt(1, 1);
	interrupt(1, 2);
	return done();
}
