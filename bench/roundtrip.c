// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * DUNE_RUN by itself: from user mode into a guest that leaves at once, and back
 * to user mode, compared with an ioctl of the same device that does nothing. The guest is
 * that of the module's tests (tests/common/guest.h).
 */
#include "bench.h"
#include "guest.h"

#include <sys/ioctl.h>

static void leave_svm(void)
{
	for (;;)
		__asm__ volatile("vmmcall" : : "a" (DUNE_HOSTCALL) : "memory");
}

static void leave_vmx(void)
{
	for (;;)
		__asm__ volatile("vmcall" : : "a" (DUNE_HOSTCALL) : "memory");
}

static uint64_t exits(const struct dune_run *run)
{
	return run->counters[DUNE_COUNT_EXITS] - run->counters[DUNE_COUNT_INTERRUPT];
}

/* The exits of one run, but for those for the host's interrupts. */
static double exits_of_run(const struct guest *guest)
{
	uint64_t before = exits(guest->run);
	int i;

	for (i = 0; i < ROUNDS; i++)
		if (ioctl(guest->fd, DUNE_RUN, 0))
			die("DUNE_RUN");
	return (double)(exits(guest->run) - before) / ROUNDS;
}

int main(void)
{
	uint64_t nothing, cost;
	struct guest guest;

	guest_open(&guest);
	guest_prepare_code(&guest, guest_vmx ? leave_vmx : leave_svm);
	if (guest_run_to_exit(&guest) || guest.run->exit_reason != DUNE_EXIT_HOSTCALL) {
		fprintf(stderr, "the guest ended with exit reason %u\n", guest.run->exit_reason);
		return 1;
	}
	nothing = MEASURE(ioctl(guest.dev, _IO(DUNE_IOC_TYPE, 0x7f), 0));
	cost = MEASURE(ioctl(guest.fd, DUNE_RUN, 0));
	figure("roundtrip", nothing, cost, exits_of_run(&guest));
	return 0;
}
