// SPDX-License-Identifier: MIT OR Apache-2.0
/* CPUs by sched_getaffinity() and /proc/cpuinfo: see cpu.h. */
#define _GNU_SOURCE
#include "cpu.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

int usable_cpu(int n)
{
	cpu_set_t set;
	int last = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		bail("sched_getaffinity: %s", strerror(errno));
	for (int cpu = 0; cpu < CPU_SETSIZE && n >= 0; cpu++) {
		if (!CPU_ISSET(cpu, &set))
			continue;
		last = cpu;
		n--;
	}
	return last;
}

void bind_to(int pid, int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(pid, sizeof(one), &one))
		bail("sched_setaffinity to CPU %d: %s", cpu, strerror(errno));
}

void pin_to(int cpu)
{
	bind_to(0, cpu);
}

bool is_amd(void)
{
	static int amd = -1;

	if (amd < 0) {
		char text[4096] = "";
		int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);

		if (fd >= 0) {
			(void)!read(fd, text, sizeof(text) - 1);
			close(fd);
		}
		amd = !!strstr(text, " svm") || strstr(text, "AuthenticAMD");
	}
	return amd;
}
