// SPDX-License-Identifier: MIT OR Apache-2.0
/* A memory cgroup: see cgroup.h. */
#include "cgroup.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"

#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOT	"/tmp/dune-cgroup"
#define GROUP	ROOT "/group"

static enum cgroups version;

enum cgroups cgroup_mount(void)
{
	mkdir(ROOT, 0700);
	version = CGROUPS_NONE;
	if (!mount("none", ROOT, "cgroup", 0, "memory"))
		version = CGROUPS_1;
	else if (!mount("none", ROOT, "cgroup2", 0, NULL) &&
		 !file_write(ROOT "/cgroup.subtree_control", "+memory"))
		version = CGROUPS_2;
	return version;
}

void cgroup_unmount(void)
{
	umount(ROOT);
	rmdir(ROOT);
}

bool cgroup_make(unsigned long limit)
{
	char text[24];

	snprintf(text, sizeof(text), "%lu", limit);
	return !mkdir(GROUP, 0700) &&
	       !file_write(version == CGROUPS_1 ? GROUP "/memory.limit_in_bytes" :
						  GROUP "/memory.max", text);
}

bool cgroup_remove(void)
{
	return !rmdir(GROUP);
}

void cgroup_empty(void)
{
	if (version == CGROUPS_1)
		file_write(GROUP "/memory.force_empty", "1");
	else
		file_write(GROUP "/memory.reclaim", "1G");
}

long cgroup_charge(void)
{
	return file_number(version == CGROUPS_1 ? GROUP "/memory.usage_in_bytes" :
						  GROUP "/memory.current");
}

long cgroup_charge_below(long most)
{
	long n = cgroup_charge();

	for (int ms = 0; n > most && ms < 10000; ms += 100) {
		cgroup_empty();
		sleep_ms(100);
		n = cgroup_charge();
	}
	return n;
}

int cgroup_set_oom_killer(bool on)
{
	return file_write(GROUP "/memory.oom_control", on ? "0" : "1");
}

void cgroup_join(void)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", getpid());
	if (file_write(GROUP "/cgroup.procs", pid))
		child_fails("the process cannot join the cgroup");
}
