// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The guard is launched beneath the running kernel and stopped, several times, while processes
 * compute with the FPU, fault and switch on all CPUs, and while a breakpoint is set. Fails when a
 * process loses state, when a CPU is not under the guard (its EFER.SVME is clear) or not free of it
 * afterwards, when the kernel log has an error, or when the machine does not survive.
 */
#define _GNU_SOURCE
#include "child.h"
#include "cpu.h"
#include "guard.h"
#include "klog.h"
#include "modules.h"
#include "msr.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORKERS	4
#define CYCLES	5

/* Of each worker, 64 bytes apart: [0] its rounds, [1] whether it lost something. */
static volatile unsigned long *progress;

/* Computes with the FPU, faults, and switches. */
static void work(volatile unsigned long *p)
{
	double sum = 0;
	unsigned long i;

	for (;;) {
		double was = sum;
		char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (page == MAP_FAILED)
			_exit(1);
		for (i = 0; i < 1000; i++)
			sum += 0.5;
		page[0] = p[0];
		page[4096] = p[0] + 1;
		sched_yield();
		if (sum != was + 500 || page[0] != (char)p[0] || page[4096] != (char)(p[0] + 1))
			p[1] = 1;
		munmap(page, 8192);
		if (!(p[0] % 64)) {
			int pid = fork();

			if (!pid)
				_exit(0);
			wait_child(pid, 20);
		}
		p[0]++;
	}
}

static bool all_move(void)
{
	unsigned long before[WORKERS];
	bool good = true;
	int i;

	for (i = 0; i < WORKERS; i++)
		before[i] = progress[i * 8];
	for (i = 0; i < WORKERS; i++) {
		good &= WAIT_FOR(progress[i * 8] >= before[i] + 20, 10);
		good &= !progress[i * 8 + 1];
	}
	return good;
}

static volatile int watched;

/* A counter of writes to @watched, by a debug register; -1 if the kernel has none. */
static int open_breakpoint(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_W,
		.bp_addr = (unsigned long)&watched,
		.bp_len = HW_BREAKPOINT_LEN_4,
	};

	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* One verdict: the breakpoint counts three writes. */
static void breakpoint_counts(int breakpoint, const char *when)
{
	unsigned long before, after;
	int i;

	if (breakpoint < 0) {
		skip("no perf_event_open()", "a breakpoint %s", when);
		return;
	}
	if (read(breakpoint, &before, 8) != 8)
		bail("the breakpoint's counter: %m");
	for (i = 0; i < 3; i++)
		watched = i;
	if (read(breakpoint, &after, 8) != 8)
		bail("the breakpoint's counter: %m");
	is(after - before, 3, "a breakpoint counts writes %s", when);
}

/* Whether EFER.SVME is @on on every CPU. */
static bool svme_everywhere(bool on)
{
	int cpu;

	for (cpu = 0; cpu < cpus_on_line(); cpu++)
		if (virtualization_is_on(cpu) != on)
			return false;
	return true;
}

static void cycle(int fd, int breakpoint, int number)
{
	struct dune_guard_status status;
	int err = guard_request(fd, DUNE_GUARD_LAUNCH);

	ok(!err, "launch %d (%s; %s)", number, strerror(-err), guard_answer.text);
	status = guard_status(fd);
	ok(status.state == DUNE_GUARD_LAUNCHED && status.cpus == (unsigned int)cpus_on_line(),
	   "all %d CPUs run under the guard", cpus_on_line());
	ok(all_move(), "all processes keep running");
	breakpoint_counts(breakpoint, "under the guard");
	ok(svme_everywhere(true), "EFER.SVME shows as set on all CPUs");
	err = guard_request(fd, DUNE_GUARD_STOP);
	ok(!err && guard_status(fd).state == DUNE_GUARD_OFF && !guard_status(fd).cpus,
	   "stop %d (%s; %s)", number, strerror(-err), guard_answer.text);
	ok(all_move(), "all processes keep running");
	breakpoint_counts(breakpoint, "without the guard");
	ok(svme_everywhere(false), "EFER.SVME is clear on all CPUs");
}

int main(void)
{
	int pids[WORKERS], breakpoint, i, fd, err;
	struct klog log;

	begin(120);
	klog_begin(&log);
	progress = shared_alloc(4096);
	for (i = 0; i < WORKERS; i++) {
		pids[i] = checked_fork();
		if (!pids[i])
			work(progress + i * 8);
	}
	breakpoint = open_breakpoint();
	fd = guard_open();
	ok(all_move(), "%d processes run", WORKERS);
	is(guard_request(fd, DUNE_GUARD_CHECK), 0, "the guard can be launched");
	for (i = 0; i < CYCLES; i++)
		cycle(fd, breakpoint, i);

	guard_refuses(fd, DUNE_GUARD_STOP, EINVAL, "not launched", "a second stop is refused");
	is(guard_request(fd, DUNE_GUARD_LAUNCH), 0, "a launch");
	guard_refuses(fd, DUNE_GUARD_LAUNCH, EALREADY, "launched already",
		      "a second launch is refused");
	err = guard_unload(fd);
	ok(!err, "unloading the module stops the guard (%s)", strerror(-err));
	ok(svme_everywhere(false), "EFER.SVME is clear on all CPUs");
	ok(all_move(), "all processes keep running");
	for (i = 0; i < WORKERS; i++) {
		kill(pids[i], SIGKILL);
		ok(wait_child(pids[i], 20).signal == SIGKILL, "process %d ends", i);
	}
	klog_end(&log);
	return done();
}
