// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * DUNE_GET_STATE on another CPU than that of the runs before and after it, as when the scheduler
 * moves a thread that forks. On VT-x the state is then read from the VMCS, which must be active on
 * one CPU at a time (SDM 25.11.1). Fails when a state or a register is lost on the way, or when
 * the kernel's log has the module's warning that a VMCS is activated on a second CPU. No emulator
 * keeps the contents of a VMCS in the CPU, so there only the warning shows that bug.
 */
#define _GNU_SOURCE
#include "cpu.h"
#include "guest.h"
#include "klog.h"
#include "tap.h"
#include "timing.h"

#include <string.h>

#define ROUNDS	4

/* Asks with 1, 2 and so on; the count lives in registers and on the stack across the runs. */
static u64 count(void *arg)
{
	volatile u64 rounds = 0;

	while (rounds < ROUNDS) {
		rounds++;
		guest_ask(rounds);
	}
	return rounds;
}

/* Starts the next run of the guest on @cpu, and expects that it asks with @value. */
static void run_on(struct guest *g, int cpu, u64 value)
{
	pin_to(cpu);

	enum guest_end end = guest_resume(g);

	ok(end == GUEST_ASK && g->value == value, "the guest counts to %lu on CPU %d (%s)", value,
	   cpu, guest_end_name(g, end));
}

/* Returns with the state of the guest as a thread on @cpu reads it. */
static void get_state_on(struct guest *g, int cpu, struct dune_state *state)
{
	pin_to(cpu);
	is(guest_get_state(g, state), 0, "DUNE_GET_STATE on CPU %d", cpu);
}

int main(void)
{
	int a = usable_cpu(0), b = usable_cpu(1);
	struct dune_state first, other;
	struct klog log;
	struct guest g;

	begin(60);
	if (a == b) {
		skip("one CPU", "DUNE_GET_STATE on another CPU");
		return done();
	}
	klog_begin(&log);
	guest_open(&g);
	guest_prepare(&g, 0, count, NULL);
	for (u64 round = 1; round <= ROUNDS; round++) {
		run_on(&g, a, round);
		get_state_on(&g, a, &first);
		get_state_on(&g, b, &other);
		ok(!memcmp(&first, &other, sizeof(first)), "the state is the same on both CPUs");
	}
	/* Another CPU than the one of the last run and than that of the last DUNE_GET_STATE. */
	get_state_on(&g, a, &first);
	pin_to(b);

	enum guest_end end = guest_resume(&g);

	ok(end == GUEST_DONE && g.value == ROUNDS, "the guest ends on CPU %d (%s)", b,
	   guest_end_name(&g, end));
	guest_close(&g);
	klog_end(&log);
	return done();
}
