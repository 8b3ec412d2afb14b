// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * KVM by itself: Dune's module may be loaded, but no process uses it. A guest
 * runs on every CPU, and machines are made and ended. Fails when KVM does not work,
 * or when the guest of vm.h sees anything that it should not. KVMGUEST_SECONDS: how
 * long.
 */
#define _GNU_SOURCE
#include "klog.h"
#include "modules.h"
#include "tap.h"
#include "timing.h"
#include "vm.h"

#include <string.h>
#include <unistd.h>

int main(void)
{
	unsigned long limit = env_number("KVMGUEST_SECONDS", 2) * 1000000UL;
	unsigned int cpus = vm_usable_cpus();
	struct klog log;

	begin(60 + limit / 1000000);
	klog_begin(&log);
	if (!kvm_exists()) {
		skip("this kernel has no KVM for this processor", "a KVM guest");
		return done();
	}
	kvm_load(NULL);
	int err = vm_start(cpus);

	if (!ok(!err, "a KVM guest with %u vCPUs starts (%s)", cpus, strerror(-err)))
		return done();
	unsigned long end = now_us() + limit;

	ok(vm_moves(), "the KVM guest runs");
	vm_pin(false);
	while (now_us() < end && vm_moves())
		sleep_ms(10);
	ok(vm_moves(), "the KVM guest keeps running (%lu rounds)", vm_rounds());
	vm_stop();

	bool good = true;

	for (int i = 0; i < 20 && good; i++) {
		err = vm_start(cpus);
		good = !err && vm_moves();
		if (!good)
			diag("machine %d: %s", i, err ? strerror(-err) : "the guest does not run");
		vm_stop();
	}
	ok(good, "20 KVM machines run, one after the other");
	kvm_unload();
	klog_end(&log);
	return done();
}
