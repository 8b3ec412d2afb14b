// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * DUNE_RUN as dune.h describes it: flags, reserved fields and vectors of the run page. Fails when
 * the module ignores one that it does not know, when the guest does not run after a refusal or
 * after a run with all of its RFLAGS set, or when a run reports the information of an earlier exit.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "tap.h"
#include "timing.h"
#include "uapi.h"

#include <errno.h>
#include <stddef.h>

static struct guest g;

static void run(void)
{
	struct dune_run *r = g.run;

	for (int bit = 1; bit < 32; bit += 6) {
		guest_prepare(&g, 0, return_42, NULL);
		r->flags = 1U << bit;
		ok(guest_run(&g) == -EINVAL, "DUNE_RUN with flag %d: EINVAL", bit);
	}
	r->flags = 0;
	guest_prepare(&g, 0, return_42, NULL);
	r->reserved0 = 1;
	ok(guest_run(&g) == -EINVAL, "DUNE_RUN with reserved0: EINVAL");
	r->reserved0 = 0;
	r->reserved1[7] = 1;
	ok(guest_run(&g) == -EINVAL, "DUNE_RUN with reserved1: EINVAL");
	r->reserved1[7] = 0;

	static const u32 vectors[] = { 1, 2, 31, 256, 0x80000020 };

	for (unsigned int i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		r->irq_vector = vectors[i];
		ok(guest_run(&g) == -EINVAL, "DUNE_RUN with vector %#x: EINVAL", vectors[i]);
	}
	r->irq_vector = 0;
	enum guest_end end = guest_call(&g, return_42, NULL);

	ok(end == GUEST_DONE && g.value == 42, "after all refusals the guest runs (%s)",
	   guest_end_name(&g, end));
	/* All that is promised about flags is that the guest cannot own the host's. */
	guest_prepare(&g, 0, return_42, NULL);
	r->regs.rflags = ~0UL;
	end = guest_resume(&g);
	diag("all flags set: %s", guest_end_name(&g, end));
	ok(!guest_set_state(&g, &g.state), "the state can be set after a run with all flags set");
	end = guest_call(&g, return_42, NULL);
	ok(end == GUEST_DONE && g.value == 42, "the guest runs after a run with all flags set");
}

/*
 * The information about an exit belongs to that exit. The run ends by a hypercall, after the
 * page fault of a page that nobody has used. SVM leaves it undefined after a hypercall.
 */
static void exit_information(void)
{
	static u64 page[1024];
	struct dune_run *r = g.run;

	guest_first_exit(&g, guest_load, (u64)&page[512]);
	ok(r->exit_reason == DUNE_EXIT_HOSTCALL, "a run ends by a hypercall (%u)", r->exit_reason);
	ok(!guest_vmx || !(r->hw_info1 | r->hw_info2),
	   "the information is not that of an earlier exit (%#lx %#lx)",
	   (unsigned long)r->hw_info1, (unsigned long)r->hw_info2);
}

int main(void)
{
	begin(60);
	guest_open(&g);
	run();
	exit_information();
	guest_close(&g);
	return done();
}
