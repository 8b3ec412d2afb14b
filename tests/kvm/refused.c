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
#include "guest.h"
#include "machine.h"
#include "modules.h"
#include "tap.h"
#include "x86.h"

#include <fcntl.h>
#include <sched.h>
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

static void bind_to(int pid, int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(pid, sizeof(one), &one);
}

static int start_guest(int i, int cpu)
{
	fflush(stdout);
	int pid = fork();

	if (!pid) {
		struct guest g;

		bind_to(0, cpu);
		guest_open(&g);
		guest_call(&g, work, (void *)&rounds[i]);
		_exit(1);
	}
	return pid;
}

static bool moves(int i)
{
	u64 before = rounds[i];

	for (int ms = 0; rounds[i] < before + 10 && ms < 20000; ms++)
		sleep_ms(1);
	return rounds[i] >= before + 10;
}

static bool set_svme(int cpu, bool on)
{
	char path[40];
	u64 efer;

	file_write("/sys/module/msr/parameters/allow_writes", "on");
	snprintf(path, sizeof(path), "/dev/cpu/%d/msr", cpu);
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return false;
	bool good = pread(fd, &efer, sizeof(efer), MSR_EFER) == sizeof(efer);

	efer = on ? efer | EFER_SVME : efer & ~(u64)EFER_SVME;
	good = good && pwrite(fd, &efer, sizeof(efer), MSR_EFER) == sizeof(efer);
	close(fd);
	return good;
}

/* Does a line that was written since @fd was opened have @text? */
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

int main(void)
{
	int here = usable_cpu(0), cpu = usable_cpu(1);
	char text[100], online[60];
	int pids[GUESTS];
	struct klog log;

	begin(240);
	klog_begin(&log);
	if (virtualization_is_on(cpu) < 0 || !kvm_exists() || cpu == here) {
		skip("needs AMD, KVM and two CPUs", "a CPU that stays without virtualization");
		return done();
	}
	if (kvm_unload() || dune_unload() || dune_load(""))
		bail("the modules are in use, or missing");
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
	klog_read(&log);
	ok(!log.has_error, "the kernel log has no error %s", log.first);
	return done();
}
