// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The guard and the other owners of virtualization, and what the guard refuses. Fails when the
 * guard is launched while Dune, KVM or anyone else has SVM on; when Dune or KVM get SVM while the
 * guard is launched; when a launch that one CPU refuses is not undone on the others; or when a
 * reason is not given in one line.
 */
#define _GNU_SOURCE
#include "cpu.h"
#include "guard.h"
#include "klog.h"
#include "modules.h"
#include "msr.h"
#include "proc.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PARAMETER	"/sys/module/dune_guard/parameters/fail_on_cpu"

static bool svme_anywhere(void)
{
	int cpu;

	for (cpu = 0; cpu < cpus_on_line(); cpu++)
		if (virtualization_is_on(cpu))
			return true;
	return false;
}

static void others(int fd)
{
	int cpu = cpus_on_line() - 1;
	char text[60];

	is(dune_insert(""), 0, "dune.ko is loaded");
	guard_refuses(fd, DUNE_GUARD_CHECK, EBUSY, "unload KVM (kvm_amd) and Dune",
		      "the check tells that Dune has SVM on");
	guard_refuses(fd, DUNE_GUARD_LAUNCH, EBUSY, "unload KVM (kvm_amd) and Dune",
		      "no launch while Dune has SVM on");
	is(dune_unload(), 0, "dune.ko is unloaded");

	ok(set_svme(cpu, true), "EFER.SVME is set on CPU %d", cpu);
	snprintf(text, sizeof(text), "in use on CPU %d", cpu);
	guard_refuses(fd, DUNE_GUARD_LAUNCH, EBUSY, text, "no launch while that CPU has SVM on");
	ok(set_svme(cpu, false), "EFER.SVME is cleared on CPU %d", cpu);
}

/* A VM, or -errno. */
static int create_vm(void)
{
	int vm, kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	if (kvm < 0)
		return -errno;
	vm = ioctl(kvm, KVM_CREATE_VM, 0);
	if (vm < 0)
		vm = -errno;
	close(kvm);
	return vm;
}

/* KVM turns SVM on with its first VM, and since 6.12 when it is loaded: either fails. */
static void kvm_under_guard(void)
{
	int vm;

	if (kvm_load(NULL)) {
		ok(true, "KVM cannot be loaded under the guard");
		return;
	}
	vm = create_vm();
	is(vm, -EBUSY, "KVM gets no SVM under the guard");
	if (vm >= 0)
		close(vm);
}

static void while_launched(int fd)
{
	is(guard_request(fd, DUNE_GUARD_LAUNCH), 0, "a launch");
	is(dune_insert(""), -EBUSY, "dune.ko cannot be loaded under the guard");
	if (kvm_exists())
		kvm_under_guard();
	is(guard_request(fd, DUNE_GUARD_STOP), 0, "a stop");

	if (!kvm_exists()) {
		skip("this kernel has no KVM for this processor", "KVM and the guard");
		return;
	}
	is(kvm_load(NULL), 0, "KVM is loaded");
	int vm = create_vm();

	ok(vm >= 0, "KVM has a VM after the stop (%d)", vm);
	guard_refuses(fd, DUNE_GUARD_LAUNCH, EBUSY, "unload KVM (kvm_amd)",
		      "no launch while KVM has SVM on");
	if (vm >= 0)
		close(vm);
	is(kvm_unload(), 0, "KVM is unloaded");
}

static void half_way(int fd)
{
	char text[12];

	snprintf(text, sizeof(text), "%d", cpus_on_line() - 1);
	is(file_write(PARAMETER, text), 0, "CPU %s is going to refuse", text);
	guard_refuses(fd, DUNE_GUARD_LAUNCH, EIO, "so no CPU does", "the launch fails");
	ok(!svme_anywhere(), "it was undone on all CPUs");
	ok(guard_status(fd).state == DUNE_GUARD_OFF && !guard_status(fd).cpus, "the guard is off");
	is(file_write(PARAMETER, "-1"), 0, "no CPU is going to refuse");
	is(guard_request(fd, DUNE_GUARD_LAUNCH), 0, "the next launch succeeds");
	is(guard_request(fd, DUNE_GUARD_STOP), 0, "a stop");
}

static void interface(int fd)
{
	struct dune_guard_entry entry = { 0 };
	struct stat file;

	is(fstat(fd, &file) ? -1 : (int)(file.st_mode & 0777), 0600, "the device is root's alone");
	ok(ioctl(fd, _IO('g', 99)) && errno == ENOTTY, "an unknown request is refused");
	ok(ioctl(fd, DUNE_GUARD_GET_STATUS, NULL) && errno == EFAULT,
	   "a status that cannot be written is refused");
	ok(ioctl(fd, DUNE_GUARD_GET_LOG, &entry) && errno == EINVAL,
	   "there is no log without the guard");
	guard_refuses(fd, DUNE_GUARD_SEAL, EINVAL, "dunectl guard launch",
		      "a guard that is not launched cannot be sealed");
	is(guard_status(fd).version, DUNE_GUARD_VERSION, "the interface's version");
}

int main(void)
{
	struct klog log;
	int fd;

	fd = guard_begin(120, &log);
	interface(fd);
	others(fd);
	while_launched(fd);
	half_way(fd);
	return guard_end(fd, &log);
}
