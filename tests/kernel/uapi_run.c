// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * DUNE_RUN as dune.h describes it: flags, reserved fields and vectors of the run page. Fails when
 * the module ignores one that it does not know, or when the guest does not run after a refusal or
 * after a run with all of its RFLAGS set.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "machine.h"
#include "tap.h"
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

int main(void)
{
	begin(60);
	guest_open(&g);
	run();
	guest_close(&g);
	return done();
}
