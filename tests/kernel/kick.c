// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A change of memory makes the vCPUs leave the guest also where the kernel
 * interrupts no CPU for it: always on Intel, where the second level is a mirror
 * of the page table; on AMD where TLBs are flushed without interrupts. No
 * emulator has that, so the module is loaded with its parameter for it. Fails
 * when a change of memory does not kick the vCPU, when the kick comes before
 * tlb_gen is advanced, when it reaches vCPUs of another process, or when a process is
 * kicked without need.
 */
#define _GNU_SOURCE
#include "child.h"
#include "cpu.h"
#include "guest.h"
#include "memory.h"
#include "modules.h"
#include "other_tests.h"
#include "tap.h"
#include "timing.h"
#include "tracing.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct guest g;
static volatile u64 spinning, stop;
static volatile u8 *page;
static int there;	/* the CPU of the guest */

/* The loop makes no system call and does not fault, so only an interrupt can end it. */
static u64 spin(void *arg)
{
	u64 sum = 0;

	sum += *page;
	spinning = 1;
	while (!stop)
		;
	return sum;
}

static void *runner(void *arg)
{
	pin_to(there);
	guest_open(&g);
	*(enum guest_end *)arg = guest_call(&g, spin, NULL);
	return NULL;
}

/* The kicks of exactly one CPU in the trace. */
static int kicks(void)
{
	return trace_count(" dune_kick: cpus=1 ");
}

/* A present page: its unmapping is a change. */
static volatile u8 *touched_page(void)
{
	volatile u8 *p = new_memory(4096);

	*p = 1;
	return p;
}

/* Its loader maps and unmaps. A fork() would change our own memory as well. */
static int other_process(void)
{
	int status = -1, pid = vfork();

	if (!pid) {
		execl("/bin/true", "true", NULL);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	return status;
}

/*
 * Count the kicks that did not lead to a flush: the TLB generation did not grow
 * since the kick before, or a later entry used a smaller one. The first entry
 * after a kick may have read the generation before it; the second may not.
 */
static int stale(int *n)
{
	u64 kick = 0, tlb_gen;
	int entries = 2, wrong = 0;
	char line[1000];
	FILE *f = fopen(TRACING "trace", "re");

	while (f && fgets(line, sizeof(line), f)) {
		char *count = strstr(line, " tlb_gen=");

		if (!count)
			continue;
		tlb_gen = strtoul(count + 9, NULL, 0);
		if (strstr(line, " dune_kick: ")) {
			if (!strstr(line, " cpus=1 "))
				continue;
			wrong += tlb_gen == kick;
			kick = tlb_gen;
			entries = 0;
			++*n;
		} else if (++entries >= 2) {
			wrong += tlb_gen < kick;
		}
	}
	if (f)
		fclose(f);
	return wrong;
}

/* fork() makes each mapping that the child gets a copy of read-only, which is a change. */
static void forked(void)
{
	unsigned long deadline = now_us() + time_limit(60) * 1000000UL;
	int n = 0, without = 0;

	/* The order of what two CPUs do matters, and their clocks may differ. */
	trace_write("trace_clock", "global");
	trace_write("events/dune/dune_entry/enable", "1");
	/* A fork() while the guest does not run kicks nobody, so their number is not fixed. */
	while (n < 20 && now_us() < deadline) {
		trace_clear();
		int pid = checked_fork();

		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
		without += stale(&n);
	}
	trace_write("events/dune/dune_entry/enable", "0");
	trace_write("trace_clock", "local");
	ok(n >= 20 && !without,
	   "the entry after each kick by a fork() flushes (%d kicks, %d without)",
	   n, without);
}

static void kicked(void)
{
	enum guest_end end = GUEST_ERROR;
	int n, status;
	pthread_t t;

	page = touched_page();
	spinning = 0;
	stop = 0;
	pthread_create(&t, NULL, runner, &end);
	while (!spinning)
		sleep_ms(1);
	/*
	 * The names of tasks are recorded at each switch, by code in the scheduler
	 * that is patched for it: QEMU's TCG lets another processor execute it
	 * half changed.
	 */
	trace_write("options/record-cmd", "0");
	ok(!trace_write("events/dune/dune_kick/enable", "1"),
	   "the module has a tracepoint for kicks");
	/* khugepaged and compaction may change this process's memory meanwhile; not each time. */
	for (int i = 0; i < 5; i++) {
		trace_clear();
		status = other_process();
		n = kicks();
		if (!n)
			break;
	}
	ok(!n && !status,
	   "another process's munmap() does not kick this process's guest (%d kicks, status %d)",
	   n, status);
	/* The guest may be out just then, for one of the host's interrupts. */
	munmap((void *)page, 4096);
	for (int i = 0; i < 500 && !(n = kicks()); i++) {
		sleep_ms(1);
		munmap((void *)touched_page(), 4096);
	}
	ok(n > 0, "the process's own munmap() kicks its guest (%d)", n);
	forked();
	trace_write("events/dune/dune_kick/enable", "0");
	stop = 1;
	pthread_join(t, NULL);
	ok(end == GUEST_DONE, "the guest continues after the kicks (%s)", guest_end_name(&g, end));
	guest_close(&g);
}

/* With a vCPU, on AMD: the kernel's own interrupts are enough here. */
static void not_kicked(void)
{
	int n;

	if (trace_write("events/dune/dune_kick/enable", "1")) {
		skip("no tracefs", "a change of memory kicks no vCPU without the parameter");
		return;
	}
	trace_clear();
	munmap((void *)touched_page(), 4096);
	n = trace_count(" dune_kick: ");
	trace_write("events/dune/dune_kick/enable", "0");
	ok(!n, "a change of memory kicks no vCPU without the parameter (%d)", n);
}

int main(void)
{
	int err, here = usable_cpu(0);
	bool traced;

	begin(400);
	traced = trace_mount("events/dune");
	there = usable_cpu(1);
	pin_to(here);
	err = guest_vcpu(&g);
	if (err)
		bail("no vCPU can be made: %s", strerror(-err));
	if (!guest_vmx)
		not_kicked();
	guest_close(&g);
	if (!guest_vmx) {
		err = dune_reload("notify_flushes=1");
		if (!ok(!err, "the module is loaded with notify_flushes=1 (%s)", strerror(-err)))
			return done();
	}
	if (here == there)
		skip("one CPU", "a munmap() on one CPU, a guest on another");
	else if (!traced)
		skip("no tracefs", "a munmap() on one CPU, a guest on another");
	else
		kicked();
	if (!guest_vmx) {
		/* The programs that change memory in every way, with this parameter. */
		run_other_tests("kernel", "memory_*", "with notify_flushes=1");
		err = dune_reload("");
		ok(!err, "the module is loaded without notify_flushes again (%s)", strerror(-err));
	}
	return done();
}
