// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A hostile module makes the guard's own VMMCALLs before the seal, so that Linux and the guard
 * disagree: one CPU leaves the guard; then one CPU seals it. Fails when Linux seals a guard that a
 * CPU has left, gives the memory back of a guard that runs, or faults.
 */
#define _GNU_SOURCE
#include "attack.h"
#include "cpu.h"
#include "guard.h"
#include "klog.h"
#include "msr.h"
#include "proc.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALL_SEAL	0x64756e6500000002

/* A CPU other than the one that makes the requests, if there is another one. */
static void one_leaves(int fd)
{
	is(guard_request(fd, DUNE_GUARD_LAUNCH), 0, "a launch");
	pin_to(usable_cpu(1));
	is(attack("leave", 0, 0, 0), 0, "a CPU leaves the guard");
	is(found, 0, "the guard lets it");
	pin_to(usable_cpu(0));
	guard_refuses(fd, DUNE_GUARD_SEAL, EIO, "a CPU has left the guard",
		      "the guard is not sealed");
	is(guard_status(fd).state, DUNE_GUARD_LAUNCHED, "it is launched");
	is(file_number("/proc/sys/kernel/kexec_load_disabled"), 0, "kexec is still allowed");
	is(guard_request(fd, DUNE_GUARD_STOP), 0, "it can be stopped");
	ok(virtualization_is_on(usable_cpu(1)) <= 0, "EFER.SVME of that CPU is clear");
}

static void one_seals(int fd)
{
	int err;

	is(guard_request(fd, DUNE_GUARD_LAUNCH), 0, "a launch on all CPUs");
	is(guard_status(fd).cpus, cpus_on_line(), "it is on all CPUs");
	is(attack("call", CALL_SEAL, 0, 0), 0, "a CPU seals the guard");
	guard_refuses(fd, DUNE_GUARD_STOP, EPERM, "has sealed the guard",
		      "the guard is not stopped");
	is(guard_status(fd).cpus, cpus_on_line(), "it is on all CPUs");
	is(guard_status(fd).state, DUNE_GUARD_SEALED, "it counts as sealed");
	ok(guard_status(fd).address, "it has its memory");
	close(fd);
	err = syscall(SYS_delete_module, "dune_guard", O_NONBLOCK) ? -errno : 0;
	is(err, -EWOULDBLOCK, "the module cannot be unloaded");
}

int main(void)
{
	struct klog log;
	int fd;

	fd = guard_begin(120, &log);
	attack_load();
	one_leaves(fd);
	one_seals(fd);
	klog_end(&log);
	return done();
}
