// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Ring 0 alongside KVM: the same measurements without KVM, with KVM loaded and
 * idle, and with a KVM machine that runs (tests/common/vm.h). Each measurement
 * has a process of its own.
 */
#define _GNU_SOURCE
#include "ring0.h"
#include "modules.h"
#include "vm.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct costs {
	uint64_t getpid, touch, trap;
};

static struct costs measure(void)
{
	struct costs costs;
	int channel[2], status;
	pid_t child;

	if (pipe(channel))
		die("pipe");
	child = fork();
	if (!child) {
		char *page = page_amid_others();

		if (dune_enter(NULL))
			_exit(1);
		costs.getpid = getpid_in_ring0();
		costs.touch = first_touch();
		costs.trap = trap_in_ring0(page);
		_exit(write(channel[1], &costs, sizeof(costs)) != sizeof(costs));
	}
	waitpid(child, &status, 0);
	if (status || read(channel[0], &costs, sizeof(costs)) != sizeof(costs)) {
		fprintf(stderr, "a process could not measure in Dune mode\n");
		exit(1);
	}
	close(channel[0]);
	close(channel[1]);
	return costs;
}

static void must(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "with_kvm: %s\n", what);
	exit(1);
}

int main(void)
{
	struct costs alone, idle, kvm_runs;

	must(kvm_exists(), "this kernel has no KVM for this processor");
	must(!kvm_unload(), "KVM cannot be unloaded");
	alone = measure();
	must(!kvm_load(NULL), "KVM cannot be loaded");
	idle = measure();
	must(!vm_start(1) && vm_moves(), "a KVM machine does not run");
	kvm_runs = measure();
	must(vm_moves(), "the KVM machine does not keep running");
	vm_stop();
	must(!kvm_unload(), "KVM cannot be unloaded");

	figure("getpid_ring0_kvm_idle", alone.getpid, idle.getpid, NONE);
	figure("getpid_ring0_kvm_vm", alone.getpid, kvm_runs.getpid, NONE);
	figure("first_touch_kvm_idle", alone.touch, idle.touch, NONE);
	figure("first_touch_kvm_vm", alone.touch, kvm_runs.touch, NONE);
	figure("trap_kvm_idle", alone.trap, idle.trap, NONE);
	figure("trap_kvm_vm", alone.trap, kvm_runs.trap, NONE);
	return 0;
}
