// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The module is unloaded while a callback of the kernel that frees an mmu notifier
 * of the module waits on another CPU. Such callbacks (SRCU's) have a queue for each
 * CPU on computers with 128 CPUs, and where srcutree.convert_to_big=1 asks for it.
 * Fails when unloading does not wait for the callback: then the kernel calls a
 * function that is gone, in one attempt of two or three, and the machine panics.
 */
#define _GNU_SOURCE
#include "child.h"
#include "cpu.h"
#include "modules.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dune.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ATTEMPTS	15

static volatile struct {
	int opened, close, closed;
} *shared;

/* Whether the module's exit has begun: it first removes its callback for CPUs. */
static bool module_ends(int states)
{
	char text[16384];
	ssize_t n = pread(states, text, sizeof(text) - 1, 0);

	if (n < 0)
		return true;
	text[n] = 0;
	return !strstr(text, "x86/virt:online");
}

/* With its first vCPU the process has a notifier of the module. Returns -1 for an error. */
static int vcpu_of(int dune)
{
	struct dune_create_vcpu create = { .size = sizeof(create) };

	return ioctl(dune, DUNE_CREATE_VCPU, &create);
}

/* The last user of the device, on a CPU that then has no time for callbacks. */
static void last_user(int cpu)
{
	struct sched_param priority = { .sched_priority = 50 };
	int states = open("/sys/devices/system/cpu/hotplug/states", O_RDONLY);
	int dune, vcpu;

	pin_to(cpu);
	dune = open("/dev/dune", O_RDWR);
	vcpu = vcpu_of(dune);
	shared->opened = 1;
	/* Without the module's line in the list of states, the wait below would end at once. */
	if (vcpu < 0 || states < 0 || module_ends(states))
		child_fails("no vCPU, or the list of states cannot be read");
	while (!shared->close)
		;
	close(vcpu);
	close(dune);
	shared->closed = 1;
	for (unsigned long end = now_us() + 1000000; !module_ends(states) && now_us() < end;)
		;
	/* Without sleeping, so that the callback gets no time. */
	sched_setscheduler(0, SCHED_FIFO, &priority);
	for (unsigned long end = now_us() + 300000; now_us() < end;)
		;
	_exit(0);
}

/* Other notifiers are made and freed meanwhile on this CPU. */
static void others(void)
{
	int pid = checked_fork();

	while (!pid) {
		int dune = open("/dev/dune", O_RDWR);

		close(vcpu_of(dune));
		close(dune);
	}
	sleep_ms(20);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static int unloaded(int cpu)
{
	int err, pid, status = 0;

	memset((void *)shared, 0, sizeof(*shared));
	err = dune_load("notify_flushes=1");
	if (err)
		return err;
	pid = checked_fork();
	if (!pid)
		last_user(cpu);
	while (!shared->opened)
		sleep_ms(1);
	others();
	shared->close = 1;
	while (!shared->closed && !waitpid(pid, &status, WNOHANG))
		;
	err = dune_unload();
	waitpid(pid, &status, 0);
	return err ? err : status ? -EIO : 0;
}

int main(void)
{
	int err = 0, n, here, there;

	begin(200);
	if (file_number("/sys/module/srcutree/parameters/convert_to_big") != 1) {
		skip("not booted with srcutree.convert_to_big=1",
		     "unloading while a callback waits on another CPU");
		return done();
	}
	here = usable_cpu(0);
	there = usable_cpu(1);
	if (here == there) {
		skip("one CPU", "unloading while a callback waits on another CPU");
		return done();
	}
	pin_to(here);
	shared = shared_alloc(sizeof(*shared));
	dune_unload();
	for (n = 0; n < ATTEMPTS && !err; n++)
		err = unloaded(there);
	ok(!err, "unloading waits for callbacks on other CPUs (%d times: %s)", n,
	   strerror(-err));
	err = dune_load("");
	ok(!err, "the module is loaded again after the attempts (%s)", strerror(-err));
	return done();
}
