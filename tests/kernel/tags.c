// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * SVM: the module asks for a flush of all TLB tags until a VMRUN was accepted.
 * The first guest that uses tags on a processor has it flush all of them; here
 * that guest has a state that the processor refuses, which flushes nothing (APM
 * vol. 2, 15.5.1). Fails when the next guest does not ask again, or when a later
 * one does. No emulator shows a stale translation, so the test counts how often
 * the module asks, by a probe on flush_all_asids().
 */
#define _GNU_SOURCE
#include "child.h"
#include "cpu.h"
#include "guest.h"
#include "klog.h"
#include "modules.h"
#include "tap.h"
#include "timing.h"
#include "tracing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static long flushes(void)
{
	char name[100];
	long n, misses;
	FILE *f = fopen(TRACING "kprobe_profile", "r");

	if (!f || fscanf(f, "%99s %ld %ld", name, &n, &misses) != 3)
		n = -1;
	if (f)
		fclose(f);
	return n;
}

static u64 call(void *arg)
{
	return hypercall0(SYS_getppid);
}

static void a_guest(void *arg)
{
	struct guest g;

	guest_open(&g);
	if (arg) {
		struct dune_state state = g.state;

		state.cs.attributes = CS_LONG_AND_32BIT;
		guest_prepare(&g, 0, call, NULL);
		guest_set_state(&g, &state);
		_exit(!guest_run(&g) && g.run->exit_reason == DUNE_EXIT_INVALID ? 0 : 1);
	}
	_exit(guest_call(&g, call, NULL) == GUEST_DONE ? 0 : 1);
}

static void one_guest(bool refused, long expected)
{
	struct outcome o = in_child(a_guest, refused ? "" : NULL, 20);
	long n = flushes();

	ok(outcome_is(o, 0), "a guest %s (%s)", refused ? "is refused" : "runs",
	   outcome_text(o));
	ok(n == expected, "the module has asked for %ld flushes of all tags (%ld)", expected, n);
}

/* At the end of the program, whichever it is: the next one must not inherit the probe. */
static void remove_probe(void)
{
	trace_write("events/tags/flush/enable", "0");
	trace_write("kprobe_events", "-:tags/flush");
}

static void count_flushes(void)
{
	/* A CPU begins anew when the module is loaded. While KVM is loaded, KVM has the tags. */
	int err = dune_load_without_kvm();

	if (err)
		bail("dune.ko: %s", strerror(-err));
	pin_to(usable_cpu(0));
	atexit(remove_probe);
	if (trace_write("kprobe_events", "p:tags/flush dune:flush_all_asids") ||
	    trace_write("events/tags/flush/enable", "1")) {
		skip("no kprobe events here", "flushes of all tags");
		return;
	}
	one_guest(true, 1);
	one_guest(true, 2);
	one_guest(false, 3);
	one_guest(false, 3);
	one_guest(true, 3);
	one_guest(false, 4);
}

int main(void)
{
	struct klog log;
	struct guest g;

	begin(60);
	klog_begin(&log);
	trace_mount("kprobe_events");
	guest_open(&g);
	guest_close(&g);
	if (guest_vmx)
		skip("VT-x flushes when a tag is taken, not at the entry", "flushes of all tags");
	else
		count_flushes();
	klog_end(&log);
	return done();
}
