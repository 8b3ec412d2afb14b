// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Dune's processes and KVM's machines at the same time, on all CPUs: neither
 * disturbs the other. Both sides verify all that they rely on in every round
 * (vm.h, workers.h). Fails when a TLB tag, the state of virtualization, an
 * MSR or a register of the one shows in the other; when KVM finds
 * virtualization on and refuses a machine; when a CPU that comes back lacks
 * something. ALONGSIDE_SECONDS: how long each of the long parts takes.
 */
#define _GNU_SOURCE
#include "child.h"
#include "cpu.h"
#include "guest.h"
#include "klog.h"
#include "modules.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"
#include "vm.h"
#include "workers.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned int cpus;
static unsigned long limit;

static bool all_move(void)
{
	bool good = vm_moves();

	return workers_move() && good;
}

static void together(void)
{
	unsigned long end;
	unsigned int n = 0;
	bool good;

	int err = vm_start(cpus);

	if (!ok(!err, "a KVM guest starts while Dune processes run (%s)", strerror(-err)))
		return;
	ok(all_move(), "KVM and Dune run at the same time");
	end = now_us() + limit;
	vm_pin(false);
	for (good = true; good && now_us() < end; n++) {
		good = worker_comes_and_goes(n);
		if (n % 8 == 0)
			good &= all_move();
		if (n == 20)
			vm_pin(true);
	}
	ok(good && all_move(), "KVM and Dune keep running while Dune processes come and go");
	diag("%u Dune processes, %lu rounds of KVM", n, vm_rounds());
	good = workers_kill();
	ok(good, "Dune processes are killed while the KVM guest runs");
	ok(vm_moves(), "the KVM guest keeps running after Dune processes were killed");
	workers_start();
	ok(all_move(), "new Dune processes run alongside the KVM guest");
	vm_stop();
	ok(workers_move(), "Dune processes keep running after the KVM machine has ended");
}

/* Machines one after the other: on 6.1 KVM turns virtualization on and off each time. */
static void machines(void)
{
	unsigned long end = now_us() + limit;
	int n = 0;

	do {
		int err = vm_start(cpus);

		if (err)
			child_fails("machine %d cannot be made: %s", n, strerror(-err));
		if (!vm_moves())
			child_fails("machine %d does not run", n);
		vm_stop();
		n++;
	} while (now_us() < end);
	diag("%d machines", n);
}

static void coming_and_going(void)
{
	int pid = checked_fork();

	if (!pid) {
		machines();
		_exit(0);
	}
	bool good = true, ended = false;
	int status = 0;

	while (good && !ended) {
		good = workers_move();
		for (unsigned int i = 0; i < 3; i++)
			good &= worker_comes_and_goes(i);
		ended = waitpid(pid, &status, WNOHANG) == pid;
	}
	if (!ended) {
		kill(pid, SIGKILL);
		wait_child(pid, 20);
	}
	ok(ended && !status, "KVM machines are made and ended while Dune processes run (%s, %#x)",
	   ended ? "wait status" : "killed before their end", status);
	ok(good, "Dune processes run while KVM's machines are made and ended");
}

static void hotplug(void)
{
	int cpu = usable_cpu(1);
	char online[60];

	snprintf(online, sizeof(online), "/sys/devices/system/cpu/cpu%d/online", cpu);
	if (cpu == usable_cpu(0) || access(online, W_OK)) {
		skip("one CPU, or one that cannot go off line", "hotplug");
		return;
	}
	int err = vm_start(cpus);

	if (!ok(!err, "a KVM guest starts (%s)", strerror(-err)))
		return;
	for (int i = 0; i < 3; i++) {
		err = file_write(online, "0");
		ok(!err, "CPU %d goes off line (%s)", cpu, strerror(-err));
		ok(all_move(), "KVM and Dune keep running while CPU %d is off line", cpu);
		err = file_write(online, "1");
		ok(!err, "CPU %d comes back (%s)", cpu, strerror(-err));
		vm_pin(true);
		ok(all_move(), "KVM and Dune keep running after CPU %d came back", cpu);
	}
	vm_stop();
	/* While KVM is loaded, but idle. */
	file_write(online, "0");
	ok(workers_move(), "CPU %d goes off line without a machine", cpu);
	file_write(online, "1");
	ok(workers_move(), "CPU %d comes back without a machine", cpu);
	err = vm_start(cpus);
	ok(!err, "a KVM guest starts on the CPU that came back (%s)", strerror(-err));
	ok(all_move(), "KVM and Dune run on the CPU that came back");
	vm_stop();
}

static void sandbox(void)
{
	char command[600];
	int err;

	snprintf(command, sizeof(command), "%s/libexec/dune-run", build_directory());
	if (access(command, X_OK)) {
		skip("dune-run is not built", "the sandbox while a KVM guest runs");
		return;
	}
	err = vm_start(cpus);
	if (!ok(!err, "a KVM guest starts (%s)", strerror(-err)))
		return;
	snprintf(command, sizeof(command),
		 "%s/libexec/dune-run -- "
		 "/bin/sh -c 'ls -l /etc | wc -l >/dev/null || exit 9; exit 7'",
		 build_directory());
	int status = system(command);

	ok(WIFEXITED(status) && WEXITSTATUS(status) == 7,
	   "the sandbox runs programs while a KVM guest runs (%#x)", status);
	ok(vm_moves(), "the KVM guest keeps running after the sandbox");
	vm_stop();
}

int main(void)
{
	struct klog log;

	limit = env_number("ALONGSIDE_SECONDS", 4) * 1000000UL;
	cpus = vm_usable_cpus();
	begin(120 + 3 * limit / 1000000);
	klog_begin(&log);
	if (!kvm_exists()) {
		skip("this kernel has no KVM for this processor", "Dune and KVM at the same time");
		return done();
	}
	int err = dune_load("");

	if (err)
		bail("dune.ko: %s", strerror(-err));
	workers_start();
	ok(workers_move(), "Dune processes run without KVM");
	err = kvm_load(NULL);
	ok(!err && vm_available() == 0, "KVM is loaded while Dune processes run");
	ok(workers_move(), "Dune processes keep running after KVM was loaded");
	together();
	coming_and_going();
	hotplug();
	sandbox();
	ok(workers_move(), "Dune processes run after all KVM guests have ended");
	err = kvm_unload();
	ok(!err && !kvm_is_loaded(), "KVM is unloaded while Dune processes run (%s)",
	   strerror(-err));
	ok(workers_move(), "Dune processes keep running after KVM was unloaded");
	ok(workers_kill(), "the Dune processes are killed at the end");
	klog_end(&log);
	return done();
}
