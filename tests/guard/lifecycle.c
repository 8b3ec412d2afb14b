// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * CPUs go off line and come back under the guard; suspend and hibernation are refused; a CPU at
 * rest does not leave the kernel; a stop leaves Linux its registers; and on the way down the guard
 * stays off. Fails when a CPU that comes back is not under the guard, when the computer begins to
 * sleep, when the kernel of an idle machine exits, when a stop loses what EFER was, or when the
 * guard can be launched after the reboot notifiers.
 */
#define _GNU_SOURCE
#include "attack.h"
#include "cpu.h"
#include "guard.h"
#include "klog.h"
#include "msr.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"
#include "x86.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define ROUNDS	4

/* Two verdicts; afterwards @launched CPUs are under the guard. */
static void set_on_line(int fd, int cpu, bool on, unsigned int launched)
{
	is(cpu_set_on_line(cpu, on), 0, "CPU %d %s", cpu, on ? "comes back" : "goes off line");
	is(guard_status(fd).cpus, launched, "%u CPUs are under the guard", launched);
}

static void hotplug(int fd)
{
	unsigned int all = cpus_on_line();
	int i, cpu = all - 1;

	if (all == 1) {
		skip("one CPU", "hotplug");
		return;
	}
	for (i = 0; i < ROUNDS; i++) {
		set_on_line(fd, cpu, false, all - 1);
		set_on_line(fd, cpu, true, all);
		is(virtualization_is_on(cpu), 1, "its EFER.SVME is set");
	}

	set_on_line(fd, cpu, false, all - 1);
	guard_refuses(fd, DUNE_GUARD_SEAL, EBUSY, "needs all of them",
		      "the guard cannot be sealed without it");
	is(file_number("/proc/sys/kernel/kexec_load_disabled"), 0, "kexec is still allowed");
	is(guard_request(fd, DUNE_GUARD_STOP), 0, "a stop without it");
	is(guard_request(fd, DUNE_GUARD_LAUNCH), 0, "a launch without it");
	is(guard_status(fd).cpus, all - 1, "the other CPUs are under the guard");
	set_on_line(fd, cpu, true, all);
}

static int suspend(void)
{
	char states[64] = "";

	file_read("/sys/power/state", states, sizeof(states));
	return file_write("/sys/power/state", strstr(states, "freeze") ? "freeze" : "mem");
}

static void sleep_is_refused(int fd)
{
	int snapshot;

	if (access("/sys/power/state", W_OK)) {
		skip("this kernel does not suspend", "suspend and hibernation");
		return;
	}
	is(suspend(), -EBUSY, "no suspend under the guard");
	snapshot = open("/dev/snapshot", O_RDONLY | O_CLOEXEC);
	ok(snapshot < 0 && errno == EBUSY, "no hibernation under the guard (%m)");
	is(guard_request(fd, DUNE_GUARD_STOP), 0, "a stop");
	snapshot = open("/dev/snapshot", O_RDONLY | O_CLOEXEC);
	if (snapshot < 0) {
		skip(strerror(errno), "hibernation without the guard");
	} else {
		guard_refuses(fd, DUNE_GUARD_LAUNCH, EBUSY, "about to suspend",
			      "no launch while the computer hibernates");
		close(snapshot);
	}
	is(guard_request(fd, DUNE_GUARD_LAUNCH), 0, "a launch");
}

static void rest(int fd)
{
	struct dune_guard_status before = guard_status(fd), after;
	int i;

	sleep(1);
	after = guard_status(fd);
	for (i = 0; i < DUNE_GUARD_EXITS; i++)
		diag("exits in an idle second, reason %d: %llu", i,
		     after.exits[i] - before.exits[i]);
	for (i = 0; i < DUNE_GUARD_EXITS; i++)
		if (i != DUNE_GUARD_EXIT_CALL)
			is(after.exits[i], before.exits[i], "no exit for reason %d", i);
}

/*
 * Registers that the VMCB has: what is written under the guard is still there after a stop. No
 * program runs on CPU 0, so none needs SYSCALL there; entry 7 of PAT, from WT to WB, is hardly
 * used.
 */
static const struct {
	const char *name;
	unsigned int msr;
	uint64_t flip;
} kept[] = {
	{ "EFER", MSR_EFER, EFER_SCE },
	{ "PAT", MSR_IA32_CR_PAT, 2ULL << 56 },
};

static void stop_keeps_registers(int fd)
{
	uint64_t was[2], now;
	int i, msrs = msr_open(0, O_RDWR);

	if (msrs < 0 || cpus_on_line() == 1) {
		skip("no second CPU, or no /dev/cpu/N/msr", "registers after a stop");
		return;
	}
	file_write("/sys/module/msr/parameters/allow_writes", "on");
	for (i = 0; i < 2; i++) {
		if (pread(msrs, &was[i], 8, kept[i].msr) != 8)
			bail("%s cannot be read: %m", kept[i].name);
		now = was[i] ^ kept[i].flip;
		ok(pwrite(msrs, &now, 8, kept[i].msr) == 8, "%s is written under the guard",
		   kept[i].name);
	}
	is(guard_request(fd, DUNE_GUARD_STOP), 0, "a stop");
	for (i = 0; i < 2; i++) {
		bool read = pread(msrs, &now, 8, kept[i].msr) == 8;

		ok(read && (now ^ was[i]) & kept[i].flip, "%s is what was written (%llx)",
		   kept[i].name, (unsigned long long)now);
		now ^= kept[i].flip;
		ok(pwrite(msrs, &now, 8, kept[i].msr) == 8, "%s is what it was", kept[i].name);
	}
	close(msrs);
	is(guard_request(fd, DUNE_GUARD_LAUNCH), 0, "a launch");
}

#define SYSTEM_RESTART	6

/* The second way lasts until the module is loaded again. */
static void going_down(int fd)
{
	is(guard_request(fd, DUNE_GUARD_STOP), 0, "a stop");
	attack("state", SYSTEM_RESTART, 0, 0);
	int err = guard_request(fd, DUNE_GUARD_LAUNCH);

	attack("state", found, 0, 0);
	is(err, -EBUSY, "no launch once the kernel goes down");
	is(guard_request(fd, DUNE_GUARD_LAUNCH), 0, "a launch");
	is(attack("reboot", 0, 0, 0), 0, "the reboot notifier is called");
	is(guard_status(fd).state, DUNE_GUARD_OFF, "the guard is stopped");
	guard_refuses(fd, DUNE_GUARD_LAUNCH, EBUSY, "about to reboot",
		      "no launch while the computer goes down");
}

int main(void)
{
	struct klog log;
	int fd;

	fd = guard_begin(120, &log);
	is(guard_request(fd, DUNE_GUARD_LAUNCH), 0, "a launch");
	rest(fd);
	hotplug(fd);
	sleep_is_refused(fd);
	rest(fd);
	stop_keeps_registers(fd);
	attack_load();
	going_down(fd);
	return guard_end(fd, &log);
}
