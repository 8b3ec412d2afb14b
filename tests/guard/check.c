// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * What the check of the computer finds, in modes whose machines are special: firmware that has not
 * locked SMM, page tables of five levels, no pages of 1 GB, a processor that Linux does not run;
 * and, by hand, no nested paging. Fails when a launch or a seal that must be refused is not, or
 * without its reason, or when a launch that is possible fails.
 */
#define _GNU_SOURCE
#include "guard.h"
#include "klog.h"
#include "proc.h"
#include "tap.h"

#include <cpuid.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define SMM_PARAMETER	"/sys/module/dune_guard/parameters/allow_unlocked_smm"

static bool has_hypervisor, has_npt, has_la57, has_few_cpus;

static void look_at_processor(void)
{
	unsigned int a, b, c, d;
	char flags[8192];

	__cpuid(1, a, b, c, d);
	has_hypervisor = c & 1u << 31;
	__cpuid(0x8000000a, a, b, c, d);
	has_npt = d & 1;
	/* The kernel shows the flag only if it uses five levels. */
	file_read("/proc/cpuinfo", flags, sizeof(flags));
	has_la57 = strstr(flags, " la57");
	file_read("/proc/cmdline", flags, sizeof(flags));
	has_few_cpus = strstr(flags, "nr_cpus=1");
}

static void refused(int fd, int err, const char *text)
{
	guard_refuses(fd, DUNE_GUARD_CHECK, err, text, "the check has the reason");
	guard_refuses(fd, DUNE_GUARD_LAUNCH, err, text, "the launch is refused");
	is(guard_status(fd).state, DUNE_GUARD_OFF, "the guard is off");
}

static void launched(int fd)
{
	is(guard_request(fd, DUNE_GUARD_CHECK), 0, "the guard can be launched");
	is(guard_request(fd, DUNE_GUARD_LAUNCH), 0, "it is launched");
	is(guard_status(fd).cpus, cpus_on_line(), "on all CPUs");
	if (has_few_cpus) {
		guard_refuses(fd, DUNE_GUARD_SEAL, EBUSY,
			      "processors of the firmware's table are not Linux's",
			      "it is not sealed, since a processor is not Linux's");
		is(file_number("/proc/sys/kernel/kexec_load_disabled"), 0,
		   "kexec is still allowed");
	}
	is(guard_request(fd, DUNE_GUARD_STOP), 0, "it is stopped");
}

int main(void)
{
	struct klog log;
	int fd;

	fd = guard_begin(60, &log);
	look_at_processor();
	if (!has_npt) {
		refused(fd, ENODEV, "no nested paging");
	} else if (has_la57) {
		refused(fd, EOPNOTSUPP, "boot with no5lvl");
	} else if (!has_hypervisor) {
		/* QEMU has no lock of SMM. */
		refused(fd, EOPNOTSUPP, "the firmware has not locked SMM");
		is(file_write(SMM_PARAMETER, "1"), 0, "the parameter is set");
		launched(fd);
	} else {
		launched(fd);
	}
	return guard_end(fd, &log);
}
