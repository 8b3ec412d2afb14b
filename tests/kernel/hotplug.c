// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * CPUs go off and on line while vCPUs run; the machine goes through a freeze
 * of all processes. Fails when virtualization is not enabled on a CPU that comes
 * back (the entry faults there), when a vCPU keeps tags or state of a CPU that
 * left, or when a process in Dune mode keeps the machine from freezing.
 */
#define _GNU_SOURCE
#include "child.h"
#include "cpu.h"
#include "guest.h"
#include "klog.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORKERS	4

/* Of each worker, 64 bytes apart: [0] its rounds, [1] 1 when its guest has ended, an error. */
static volatile u64 *progress;

static u64 work(void *arg)
{
	volatile u64 *p = arg;
	u64 here = 0;

	for (;;) {
		long pid = hypercall0(SYS_getpid);
		/* Memory, calls and registers: each round must find its own. */
		volatile u64 local = here + pid;

		for (volatile int i = 0; i < 2000; i++)
			;
		if (local != here + pid || (u64)hypercall0(SYS_gettid) != (u64)pid)
			return 1;
		here++;
		p[0] = here;
	}
}

static void worker(volatile u64 *p)
{
	struct guest g;

	guest_open(&g);
	enum guest_end end = guest_call(&g, work, (void *)p);

	p[1] = 1;
	child_fails("a guest that must never end has ended: %s", guest_end_name(&g, end));
}

static bool all_move(void)
{
	u64 before[WORKERS];
	bool good = true;

	for (int i = 0; i < WORKERS; i++)
		before[i] = progress[i * 8];
	for (int i = 0; i < WORKERS; i++) {
		good &= WAIT_FOR(progress[i * 8] != before[i], 8);
		good &= !progress[i * 8 + 1];
	}
	return good;
}

static bool root_is_9p(void)
{
	static char text[16384];

	file_read("/proc/mounts", text, sizeof(text));
	/* An overlay does not show the device of its lower directory. */
	return strstr(text, " 9p ") || strstr(text, "overlay / ");
}

static void hotplug_rounds(int pid)
{
	long rounds = env_number("HOTPLUG_ROUNDS", 6);
	int cpu = usable_cpu(1);	/* the one that goes */
	char online[60];
	cpu_set_t all;

	snprintf(online, sizeof(online), "/sys/devices/system/cpu/cpu%d/online", cpu);
	if (cpu == usable_cpu(0) || access(online, W_OK)) {
		skip("one CPU, or one that cannot go off line", "hotplug");
		return;
	}
	sched_getaffinity(0, sizeof(all), &all);
	for (long i = 0; i < rounds; i++) {
		int err = file_write(online, "0");

		ok(!err && file_number(online) == 0, "CPU %d goes off line (%s)", cpu,
		   strerror(-err));
		ok(all_move(), "all guests keep running while CPU %d is off line", cpu);
		err = file_write(online, "1");
		ok(!err && file_number(online) == 1, "CPU %d comes back (%s)", cpu,
		   strerror(-err));
		ok(all_move(), "all guests keep running after CPU %d came back", cpu);

		/* On the CPU that came back in particular. */
		bind_to(pid, cpu);
		sleep_ms(10);
		ok(all_move(), "the guest that runs on CPU %d only keeps running", cpu);
		sched_setaffinity(pid, sizeof(all), &all);
	}
}

/* The state of /sys/power/state to ask for. Only suspend to memory takes CPUs down. */
static const char *suspend_state(void)
{
	char text[64] = "";

	file_read("/sys/power/state", text, sizeof(text));
	return strstr(text, "mem") ? "mem" : strstr(text, "freeze") ? "freeze" : NULL;
}

static bool has_level(const char *level)
{
	char text[64] = "";

	file_read("/sys/power/pm_test", text, sizeof(text));
	return strstr(text, level);
}

/*
 * One of the kernel's tests of suspend: it goes as far as @level (freezing of processes,
 * devices, CPUs) and resumes at once.
 */
static void suspend_level(const char *level, bool by_devices)
{
	const char *how = suspend_state();

	if (!has_level(level) || !how) {
		skip("no pm_test or no suspend here", "suspend test: %s", level);
		return;
	}
	/* Suspend freezes devices before CPUs, and virtio 9p does not resume. */
	if (by_devices && root_is_9p() && !env_number("HOTPLUG_SUSPEND", 0)) {
		skip("the machine's files are on 9p (HOTPLUG_SUSPEND=1 to try, once)",
		     "suspend test: %s", level);
		return;
	}
	file_write("/sys/power/pm_test", level);
	int err = file_write("/sys/power/state", how);

	file_write("/sys/power/pm_test", "none");
	if (err == -EBUSY || err == -ENODEV || err == -EINVAL)
		skip(strerror(-err), "suspend test: %s", level);
	else
		ok(!err, "suspend (%s) as far as \"%s\" and back (%s)", how, level,
		   strerror(-err));
	ok(all_move(), "all guests keep running after the suspend test: %s", level);
}

int main(void)
{
	int pids[WORKERS];
	struct klog log;

	begin(120);
	klog_begin(&log);
	progress = shared_alloc(4096);
	for (int i = 0; i < WORKERS; i++) {
		pids[i] = checked_fork();
		if (!pids[i])
			worker(progress + i * 8);
	}
	ok(all_move(), "%d guests run", WORKERS);
	hotplug_rounds(pids[0]);

	/* It waits busily there: five seconds, which a loaded host makes a lockup. */
	file_write("/sys/module/suspend/parameters/pm_test_delay", "1");
	suspend_level("freezer", false);
	suspend_level("processors", true);
	for (int i = 0; i < WORKERS; i++) {
		kill(pids[i], SIGKILL);
		struct outcome o = wait_child(pids[i], 20);

		ok(o.signal == SIGKILL, "guest %d ends by SIGKILL (%s)", i, outcome_text(o));
	}
	klog_end(&log);
	return done();
}
