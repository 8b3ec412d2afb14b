// SPDX-License-Identifier: MIT OR Apache-2.0
/* MSRs by the module msr: see msr.h. */
#define _GNU_SOURCE
#include "cpu.h"
#include "modules.h"
#include "msr.h"
#include "proc.h"
#include "tap.h"
#include "x86.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

int msr_open(int cpu, int flags)
{
	char path[40];

	snprintf(path, sizeof(path), "/dev/cpu/%d/msr", cpu);
	if (access(path, F_OK))
		modprobe("-q", "msr", NULL);
	return open(path, flags | O_CLOEXEC);
}

int virtualization_is_on(int cpu)
{
	uint64_t efer;
	int fd;

	if (!is_amd())
		return -1;
	fd = msr_open(cpu, O_RDONLY);
	if (fd < 0)
		return -1;
	if (pread(fd, &efer, sizeof(efer), MSR_EFER) != sizeof(efer))
		bail("EFER of CPU %d cannot be read: %m", cpu);
	close(fd);
	return !!(efer & EFER_SVME);
}

bool set_svme(int cpu, bool on)
{
	int fd = msr_open(cpu, O_RDWR);
	uint64_t efer;

	if (fd < 0)
		return false;
	file_write("/sys/module/msr/parameters/allow_writes", "on");
	bool good = pread(fd, &efer, sizeof(efer), MSR_EFER) == sizeof(efer);

	efer = on ? efer | EFER_SVME : efer & ~(uint64_t)EFER_SVME;
	good = good && pwrite(fd, &efer, sizeof(efer), MSR_EFER) == sizeof(efer);
	close(fd);
	return good;
}

const char *virtualization_unknown_reason(void)
{
	return is_amd() ? "no /dev/cpu/N/msr, which shows EFER.SVME" :
			  "no file shows Intel's bit, which is in CR4";
}
