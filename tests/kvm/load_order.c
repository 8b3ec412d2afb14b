// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The modules of Dune and of KVM, loaded and unloaded in every order, with
 * and without users of each. Fails when one of them does not load or unload
 * because of the other, keeps a reference, does not work afterwards, or
 * leaves virtualization on.
 */
#define _GNU_SOURCE
#include "cpu.h"
#include "guest.h"
#include "klog.h"
#include "modules.h"
#include "msr.h"
#include "tap.h"
#include "timing.h"
#include "vm.h"
#include "workers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static unsigned int cpus;

static bool dune_works(void)
{
	bool good = true;

	for (unsigned int i = 0; i < 3; i++)
		good &= worker_comes_and_goes(i);
	return good;
}

static bool kvm_works(void)
{
	int err = vm_start(cpus);
	bool good = !err && vm_moves();

	if (!good)
		diag("KVM: %s", err ? strerror(-err) : "the guest does not run");
	vm_stop();
	return good;
}

/* While neither module has users, virtualization is off. */
static void is_off(const char *when)
{
	for (int i = 0, cpu, last = -1; (cpu = usable_cpu(i)) != last; i++) {
		int on = virtualization_is_on(cpu);

		last = cpu;
		if (on < 0)
			skip(virtualization_unknown_reason(), "CPU %d: virtualization is off %s",
			     cpu, when);
		else
			ok(!on, "CPU %d: virtualization is off %s", cpu, when);
	}
}

static void load_dune(void)
{
	int err = dune_load("");

	if (!ok(!err, "Dune is loaded (%s)", strerror(-err)))
		bail("without the module nothing more can be tested");
	ok(dune_works(), "Dune works after it was loaded");
}

static void load_kvm(const char *parameter)
{
	int err = kvm_load(parameter);

	if (!ok(!err, "KVM is loaded %s(%s)", parameter ? parameter : "", strerror(-err)))
		bail("without KVM nothing more can be tested");
	ok(kvm_works(), "KVM works after it was loaded");
}

static void unload_dune(void)
{
	int err = dune_unload();

	ok(!err && !dune_is_loaded(), "Dune is unloaded (%s)", strerror(-err));
}

static void unload_kvm(void)
{
	int err = kvm_unload();

	ok(!err && !kvm_is_loaded(), "KVM is unloaded (%s)", strerror(-err));
}

/* While neither module has users. */
static void all_orders(const char *parameter)
{
	for (int first = 0; first < 2; first++) {
		for (int last = 0; last < 2; last++) {
			if (first)
				load_kvm(parameter);
			load_dune();
			if (!first)
				load_kvm(parameter);
			ok(dune_works(), "Dune works while KVM is loaded");
			ok(kvm_works(), "KVM works while Dune is loaded");
			if (last) {
				unload_kvm();
				ok(dune_works(), "Dune still works after KVM was unloaded");
				unload_dune();
			} else {
				unload_dune();
				ok(kvm_works(), "KVM still works after Dune was unloaded");
				unload_kvm();
			}
			is_off("when both have gone");
		}
	}
}

/* While a KVM machine runs all the time. */
static void under_kvm(void)
{
	load_kvm(NULL);
	int err = vm_start(cpus);

	ok(!err && vm_moves(), "a KVM guest runs (%s)", strerror(-err));
	for (int i = 0; i < 2; i++) {
		load_dune();
		workers_start();
		ok(workers_move() && vm_moves(), "Dune processes run alongside the KVM guest");
		ok(kvm_unload_vendor() == -EWOULDBLOCK, "KVM does not unload while it is used");
		ok(dune_unload() == -EWOULDBLOCK, "Dune does not unload while it is used");
		workers_kill();
		ok(module_users("dune", 0) == 0,
		   "Dune's module has no users after its processes were killed");
		unload_dune();
		ok(vm_moves(), "the KVM guest keeps running after Dune was unloaded");
	}
	vm_stop();
	ok(module_users(kvm_vendor(), 0) == 0,
	   "KVM's module has no users after its machine has ended");
	unload_kvm();
	is_off("when both have gone");
}

/* While Dune processes run all the time. */
static void under_dune(const char *parameter)
{
	load_dune();
	workers_start();
	ok(workers_move(), "Dune processes run");
	for (int i = 0; i < 2; i++) {
		load_kvm(parameter);
		ok(workers_move(), "the Dune processes keep running after KVM was loaded");
		if (i % 2) {
			ok(!kvm_unload_vendor(), "%s alone is unloaded", kvm_vendor());
			ok(workers_move(), "the Dune processes keep running after %s was unloaded",
			   kvm_vendor());
		}
		unload_kvm();
		ok(workers_move(), "the Dune processes keep running after KVM was unloaded");
	}
	ok(workers_kill(), "the Dune processes are killed");
	ok(module_users("dune", 0) == 0,
	   "Dune's module has no users after its processes were killed");
	unload_dune();
	is_off("when both have gone");
}

int main(void)
{
	static const char late[] = "enable_virt_at_load=0";
	bool was_loaded = dune_is_loaded();
	struct klog log;

	cpus = vm_usable_cpus();
	begin(240);
	klog_begin(&log);
	if (!kvm_exists()) {
		skip("this kernel has no KVM for this processor",
		     "Dune's module and KVM's in every order");
		return done();
	}

	int err = kvm_unload();

	if (!err)
		err = dune_unload();
	if (err)
		bail("a module cannot be unloaded: %s", strerror(-err));
	is_off("before all");
	all_orders(NULL);
	under_kvm();
	under_dune(NULL);

	kvm_load(NULL);
	bool can = !access("/sys/module/kvm/parameters/enable_virt_at_load", F_OK);

	kvm_unload();
	if (can) {
		all_orders(late);
		under_dune(late);
	} else {
		skip("this KVM never turns virtualization on when loaded", "KVM with %s", late);
	}
	if (was_loaded)
		load_dune();
	klog_end(&log);
	return done();
}
