// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Ring 0 alongside KVM: the same measurements without KVM, with KVM loaded and
 * idle, and with a KVM machine that runs (tests/common/vm.h). Each measurement
 * has a process of its own.
 */
#define _GNU_SOURCE
#include "dune_mode.h"
#include "ring0.h"
#include "modules.h"
#include "vm.h"

#include <string.h>

struct costs {
	uint64_t getpid, touch, trap;
};

static void measure_ring0(void *result)
{
	struct costs *costs = result;
	char *page = page_in_middle();

	enter_dune_mode();
	costs->getpid = getpid_in_ring0();
	costs->touch = first_touch();
	costs->trap = trap_in_ring0(page);
}

static struct costs measure(void)
{
	struct costs costs;

	in_process(measure_ring0, &costs, sizeof(costs));
	return costs;
}

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "with_kvm: %s\n", what);
	exit(1);
}

/* @err: 0 or -errno. */
static void must_succeed(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "with_kvm: %s: %s\n", what, strerror(-err));
	exit(1);
}

int main(void)
{
	struct costs alone, idle, kvm_runs;

	must(kvm_exists(), "this kernel has no KVM for this processor");
	must_succeed(kvm_unload(), "KVM cannot be unloaded");
	alone = measure();
	must_succeed(kvm_load(NULL), "KVM cannot be loaded");
	idle = measure();
	must_succeed(vm_start(1), "a KVM machine cannot be made");
	must(vm_moves(), "a KVM machine does not run");
	kvm_runs = measure();
	must(vm_moves(), "the KVM machine does not keep running");
	vm_stop();
	must_succeed(kvm_unload(), "KVM cannot be unloaded");

	figure("getpid_ring0_kvm_idle", alone.getpid, idle.getpid, NO_FIGURE);
	figure("getpid_ring0_kvm_vm", alone.getpid, kvm_runs.getpid, NO_FIGURE);
	figure("first_touch_kvm_idle", alone.touch, idle.touch, NO_FIGURE);
	figure("first_touch_kvm_vm", alone.touch, kvm_runs.touch, NO_FIGURE);
	figure("trap_kvm_idle", alone.trap, idle.trap, NO_FIGURE);
	figure("trap_kvm_vm", alone.trap, kvm_runs.trap, NO_FIGURE);
	return 0;
}
