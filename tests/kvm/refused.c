// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A CPU that stays without virtualization when KVM is unloaded. Here EFER.SVME is set
 * through /dev/cpu/N/msr, as if another hypervisor had turned virtualization on. A guest
 * that is bound to that CPU has to wait. Fails when the kernel log does not report the CPU,
 * when the guest runs on or cannot be killed, when a guest that is moved to another CPU does
 * not continue, or when the CPU gets no virtualization after it was off line. (AMD:
 * no file shows or sets Intel's bit, which is in CR4.)
 */
#define _GNU_SOURCE
#include "child.h"
#include "cpu.h"
#include "guest.h"
#include "klog.h"
#include "modules.h"
#include "msr.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GUESTS		2

static volatile u64 *rounds;	/* of each guest */

static u64 work(void *arg)
{
	volatile u64 *round = arg;

	for (;;) {
		hypercall0(SYS_getppid);
		(*round)++;
	}
	return 0;
}

static int start_guest(int i, int cpu)
{
	int pid = checked_fork();

	if (!pid) {
		struct guest g;

		pin_to(cpu);
		guest_open(&g);
		guest_call(&g, work, (void *)&rounds[i]);
		child_fails("a guest that works without end returned");
	}
	return pid;
}

static bool moves(int i)
{
	u64 before = rounds[i];

	return WAIT_FOR(rounds[i] >= before + 10, 5);
}

/* Whether a line that was written since @fd was opened has @text. */
static bool log_has(int fd, const char *text)
{
	char line[8192];
	bool found = false;
	ssize_t n;

	while ((n = read(fd, line, sizeof(line) - 1)) > 0) {
		line[n] = 0;
		found |= !!strstr(line, text);
	}
	return found;
}

/* The reason why this machine cannot make the test, or NULL. */
static const char *missing(int here, int cpu)
{
	if (cpu == here)
		return "one CPU";
	if (!kvm_exists())
		return "this kernel has no KVM for this processor";
	if (virtualization_is_on(cpu) < 0)
		return virtualization_unknown_reason();
	return NULL;
}

int main(void)
{
	int here = usable_cpu(0), cpu = usable_cpu(1);
	const char *reason = missing(here, cpu);
	char text[100], online[60];
	int pids[GUESTS];
	struct klog log;

	begin(240);
	klog_begin(&log);
	if (reason) {
		skip(reason, "a CPU that stays without virtualization");
		return done();
	}

	int err = dune_load_without_kvm();

	if (err)
		bail("KVM cannot be unloaded, or dune.ko not loaded anew: %s", strerror(-err));
	rounds = shared_alloc(4096);
	for (int i = 0; i < GUESTS; i++)
		pids[i] = start_guest(i, cpu);
	ok(moves(0) && moves(1), "guests run on CPU %d", cpu);

	/* kvm.ko alone does not enable virtualization; kvm_amd would. */
	ok(!kvm_load_common(), "kvm.ko is loaded");
	ok(moves(0) && moves(1), "the guests continue while kvm.ko is loaded");
	int messages = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	lseek(messages, 0, SEEK_END);
	ok(set_svme(cpu, true), "EFER.SVME is set on CPU %d", cpu);
	ok(!kvm_unload(), "kvm.ko is unloaded");
	snprintf(text, sizeof(text), "CPU %d: virtualization is in use by another hypervisor", cpu);
	ok(log_has(messages, text), "the kernel log reports: %s", text);
	close(messages);

	u64 before[GUESTS] = { rounds[0], rounds[1] };

	sleep_ms(100);
	ok(rounds[0] == before[0] && rounds[1] == before[1],
	   "the guests wait on the CPU that has no virtualization");
	kill(pids[0], SIGKILL);
	ok(wait_child(pids[0], 20).signal == SIGKILL, "a waiting guest dies by SIGKILL");
	bind_to(pids[1], here);
	ok(moves(1), "a guest that is moved to CPU %d continues", here);

	ok(set_svme(cpu, false), "EFER.SVME is cleared on CPU %d", cpu);
	snprintf(online, sizeof(online), "/sys/devices/system/cpu/cpu%d/online", cpu);
	ok(!file_write(online, "0") && !file_write(online, "1"),
	   "CPU %d goes off line and comes back", cpu);
	bind_to(pids[1], cpu);
	sleep_ms(10);
	ok(moves(1), "the guest runs on CPU %d again", cpu);
	kill(pids[1], SIGKILL);
	ok(wait_child(pids[1], 20).signal == SIGKILL, "the running guest dies by SIGKILL");
	klog_end(&log);
	return done();
}
