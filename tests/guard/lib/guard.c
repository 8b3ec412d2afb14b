// SPDX-License-Identifier: MIT OR Apache-2.0
/* The device of dune-guard.ko: see guard.h. */
#define _GNU_SOURCE
#include "guard.h"
#include "klog.h"
#include "modules.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct dune_guard_answer guard_answer;

static int open_device(void)
{
	return open("/dev/dune-guard", O_RDWR | O_CLOEXEC);
}

int guard_open(void)
{
	int fd, err = dune_unload();

	if (err)
		bail("dune.ko cannot be unloaded: %s", strerror(-err));
	if (!module_is_loaded("dune_guard")) {
		err = module_insert("dune-guard", "");
		if (err)
			bail("dune-guard.ko cannot be loaded: %s", strerror(-err));
	}
	WAIT_FOR((fd = open_device()) >= 0, 5);
	if (fd < 0)
		bail("/dev/dune-guard: %m");
	return fd;
}

int guard_unload(int fd)
{
	close(fd);
	return module_unload("dune_guard");
}

int guard_begin(unsigned int seconds, struct klog *log)
{
	begin(seconds);
	klog_begin(log);
	return guard_open();
}

int guard_end(int fd, struct klog *log)
{
	is(guard_unload(fd), 0, "the module is unloaded");
	klog_end(log);
	return done();
}

int guard_request(int fd, unsigned long request)
{
	memset(&guard_answer, 0, sizeof(guard_answer));
	return ioctl(fd, request, &guard_answer) ? -errno : 0;
}

bool guard_refuses(int fd, unsigned long request, int err, const char *text, const char *name)
{
	int got = guard_request(fd, request);

	return ok(got == -err && strstr(guard_answer.text, text), "%s (%s; %s)", name,
		  got ? strerror(-got) : "no error", guard_answer.text);
}

struct dune_guard_status guard_status(int fd)
{
	struct dune_guard_status status;

	if (ioctl(fd, DUNE_GUARD_GET_STATUS, &status))
		bail("the guard's status: %m");
	return status;
}

int cpus_on_line(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN);
}

int cpu_set_on_line(int cpu, bool on)
{
	char path[60];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	return file_write(path, on ? "1" : "0");
}
