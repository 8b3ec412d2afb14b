// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * KVM is loaded and unloaded while a guest of Dune has a CPU for itself. A fully
 * preemptible kernel (--mode kvm-preempt) then switches to no other thread, and
 * the run must notice by itself that virtualization has changed on its CPU.
 * Fails when the guest is entered with VM_HSAVE_PA zero (AMD), when it sees
 * the host's system-call MSRs (Intel), or when it stops.
 */
#define _GNU_SOURCE
#include "child.h"
#include "cpu.h"
#include "guest.h"
#include "klog.h"
#include "modules.h"
#include "msr.h"
#include "tap.h"
#include "timing.h"
#include "x86.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROUNDS		5

static struct shared {
	volatile u64 round;
	volatile u64 foreign;	/* a value of LSTAR that is not the guest's */
} *shared;

static u64 work(void *arg)
{
	u64 lstar = (u64)arg;

	for (;;) {
		u64 seen = rdmsr(MSR_LSTAR);

		if (seen != lstar)
			shared->foreign = seen;
		hypercall0(SYS_getppid);
		shared->round++;
	}
	return 0;
}

static void spin(void)
{
	struct guest g;

	pin_to(usable_cpu(0));
	guest_open(&g);
	guest_call(&g, work, (void *)g.state.lstar);
	child_fails("a guest that works without end returned");
}

static bool moves(void)
{
	u64 before = shared->round;

	return WAIT_FOR(shared->round >= before + 100, 5);
}

/* All ones where the processor has no such register, or no file shows it. */
static u64 host_msr(u32 msr)
{
	u64 value = ~0UL;
	int fd = msr_open(usable_cpu(0), O_RDONLY);

	if (fd < 0)
		return ~0UL;
	if (pread(fd, &value, sizeof(value), msr) != sizeof(value))
		value = ~0UL;
	close(fd);
	return value;
}

static void check(const char *when)
{
	bool good = moves();
	u64 hsave = host_msr(MSR_VM_HSAVE_PA);

	ok(good, "the guest keeps running when KVM %s", when);
	ok(!shared->foreign, "the guest sees its own LSTAR when KVM %s (%#lx)", when,
	   shared->foreign);
	if (hsave == ~0UL)
		skip(is_amd() ? "the register cannot be read by /dev/cpu/N/msr" :
				"only AMD has this register", "VM_HSAVE_PA when KVM %s", when);
	else
		ok(hsave, "the guest is entered with a host save area when KVM %s (%#lx)", when,
		   hsave);
}

int main(void)
{
	struct klog log;

	begin(120);
	klog_begin(&log);
	if (usable_cpu(0) == usable_cpu(1)) {
		skip("one CPU", "a guest that has a CPU for itself");
		return done();
	}
	if (!kvm_exists()) {
		skip("this kernel has no KVM for this processor",
		     "a guest while KVM is loaded and unloaded");
		return done();
	}
	int err = kvm_unload();

	if (!err)
		err = dune_load("");
	if (err)
		bail("the modules: %s", strerror(-err));
	shared = shared_alloc(sizeof(*shared));
	pin_to(usable_cpu(1));
	int pid = checked_fork();

	if (!pid)
		spin();
	ok(moves(), "a guest runs");
	host_msr(MSR_VM_HSAVE_PA);
	for (int i = 0; i < ROUNDS; i++) {
		/* kvm.ko alone does not enable virtualization; kvm_amd or kvm_intel would. */
		ok(!kvm_load_common(), "kvm.ko is loaded");
		check("has come");
		ok(!kvm_unload(), "kvm.ko is unloaded");
		check("has gone");
	}
	kill(pid, SIGKILL);
	ok(wait_child(pid, 20).signal == SIGKILL, "the guest is killed");
	klog_end(&log);
	return done();
}
