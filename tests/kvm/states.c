// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The module's own tests (tests/kernel) with KVM loaded but idle, and with a
 * KVM machine running: they must pass as they do without KVM. Fails when one of
 * them fails, or the KVM guest does at the same time.
 * STATES_TESTS: names or patterns of other tests than the usual ones, for both.
 * (suite.toml sets LIFETIME_CYCLES for kernel/lifetime.)
 */
#define _GNU_SOURCE
#include "klog.h"
#include "modules.h"
#include "other_tests.h"
#include "tap.h"
#include "timing.h"
#include "vm.h"

#include <stdlib.h>
#include <string.h>

static void tests(const char *names, const char *state)
{
	run_other_tests("kernel", getenv("STATES_TESTS") ? getenv("STATES_TESTS") : names, state);
}

int main(void)
{
	struct klog log;

	begin(400);
	klog_begin(&log);
	if (!kvm_exists()) {
		skip("this kernel has no KVM for this processor", "tests while KVM is loaded");
		return done();
	}
	dune_load("");

	ok(!kvm_load(NULL), "KVM is loaded");
	tests("uapi_* renew syscall* signals injection memory_* host_* lifetime outlived",
	      "with KVM loaded");

	int err = vm_start(vm_usable_cpus());

	if (ok(!err, "a KVM guest runs (%s)", strerror(-err))) {
		tests("syscall* signals injection memory_* instructions guest_tables endless "
		      "own_memory own_process scribbled guest_state lifetime outlived",
		      "with a KVM guest running");
		ok(vm_moves(), "the KVM guest keeps running after the tests");
		vm_stop();
	}
	ok(!kvm_unload(), "KVM is unloaded");
	klog_end(&log);
	return done();
}
