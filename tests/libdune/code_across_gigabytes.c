// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A program in which the border of two gigabytes lies within libdune's code: lib/across.ld
 * places it there, and the randomization of addresses may do so in any program. Fails when
 * the first page table has only one of the two gigabytes, since a page fault in the guest
 * then faults before the entry is made, without end.
 */
#include "rings.h"
#include "tap.h"
#include "x86.h"

/* guest/entry.S and memory/table.c: where a page fault begins, and where its entry is made */
extern const char dune_stubs[], dune_pf_early[];

static uint64_t gigabyte(const void *p)
{
	return (uint64_t)p / GB;
}

int main(void)
{
	ok(gigabyte(dune_stubs) != gigabyte(dune_pf_early),
	   "the code of a page fault is in two gigabytes (%p, %p)", dune_stubs, dune_pf_early);
	must_enter(NULL);
	ok(dune_active(), "dune_enter() succeeds");
	return done();
}
