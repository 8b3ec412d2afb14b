// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The assignment of a granule (libdune/memory/granule.c) that ends at each of its
 * instructions, as by the death of a vfork child. The processor's guest-physical addresses
 * are pretended to be few. Fails when a later assignment gives two granules to one
 * gigabyte, which the kernel refuses, or two gigabytes to one granule. It uses the
 * library's own headers, since the state is not public.
 */
#include <dune.h>
#include "../../libdune/common/layout.h"
#include "../../libdune/common/process.h"
#include "internals.h"
#include "step.h"
#include "tap.h"

#define GRANULES	1000
/* An address in each of many gigabytes. Nothing is mapped there. */
#define ADDRESS(n)	(0x200000000000UL + (n) * GB)

static int steps, at_step;
static void *after_death[5];

static void die(void)
{
	__builtin_longjmp(after_death, 1);
}

__attribute__((target("general-regs-only")))
static void on_step(struct dune_tf *tf)
{
	if (++steps != at_step)
		return;
	tf->rip = (u64)die;
	tf->rsp = (tf->rsp - RED_ZONE) & ~15UL;
	tf->rflags = (tf->rflags & ~(u64)RFLAGS_TF) | RFLAGS_IF;
}

/* Returns whether the whole assignment of a granule to @va took less than at_step steps. */
static bool ends_before(u64 va)
{
	steps = 0;
	if (!__builtin_setjmp(after_death)) {
		step_on();
		dune_granule_gpa(va);
		step_off();
	}
	return steps < at_step;
}

/* Returns how many of the granules in use lead to a gigabyte that has another one. */
static int count_wrong(void)
{
	u32 n, used = dune_process.granules_used;
	int wrong = 0;

	for (n = 1; n < used; n++)
		wrong += dune_granule_gpa(dune_va((u64)n * GB)) != (u64)n * GB;
	return wrong;
}

int main(void)
{
	u64 granules, used;
	int wrong = 0, lost = 0, n = 0;

	if (dune_enter(NULL))
		bail("dune_enter: %s", dune_enter_error());
	granules = dune_process.granules;
	used = dune_process.granules_used;
	if (granules) {
		skip("this processor's addresses are really few", "granules");
		return done();
	}
	dune_trap_set(VEC_DB, on_step, 0);
	for (at_step = 1; ; at_step++) {
		dune_process.granules = GRANULES;
		if (ends_before(ADDRESS(n)))
			break;
		/* as its parent does (libdune/host/process.c) */
		dune_process.locks[LOCK_GRANULES].holder = 0;
		/* Another gigabyte, and then the one of the call that died. */
		dune_granule_gpa(ADDRESS(n + 1));
		lost += dune_va(dune_granule_gpa(ADDRESS(n))) != ADDRESS(n);
		wrong += count_wrong();
		dune_process.granules = 0;
		n += 2;
	}
	dune_process.granules = granules;
	dune_process.granules_used = used;
	ok(at_step > 20, "the assignment takes %d steps", at_step);
	is(lost, 0, "a gigabyte whose assignment ended midway gets a granule");
	is(wrong, 0, "no gigabyte has two granules");
	return done();
}
