// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The process's LDT during a run. Another thread calls modify_ldt() while this
 * one enters and leaves the guest on another CPU: the kernel reloads LDTR here
 * by an interrupt, without a context switch, and frees the old table. Fails
 * when a run brings back the old LDTR, or loses the process's first LDT, or
 * loses a segment register that holds an LDT selector.
 */
#define _GNU_SOURCE
#include "child.h"
#include "cpu.h"
#include "guest.h"
#include "klog.h"
#include "tap.h"
#include "timing.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SELECTOR(n)	((n) << 3 | 7)	/* LDT, ring 3 */
#define EXITS		100

enum phase { STARTING, READY, IN_GUEST, WRITTEN, FAILED };

struct round {
	int before;	/* entries that the process has before the run */
	int entry;	/* the one that the other thread writes during the run */
	volatile enum phase phase;
};

static bool write_ldt(u32 entry, u32 limit)
{
	struct {
		u32 entry, base, limit, flags;
	} d = { entry, 0x1000, limit, 0x41 };	/* 32 bits, limit in bytes, usable */

	return !raw_syscall(SYS_modify_ldt, 1, (long)&d, sizeof(d), 0, 0, 0);
}

/* The limit by the LDT that this CPU has loaded, or -1. */
static long limit_of(u32 entry)
{
	u32 limit;
	bool found;

	asm volatile("lsl %2, %0" : "=r"(limit), "=@ccz"(found) : "r"(SELECTOR(entry)));
	return found ? (long)limit : -1;
}

static void *other_thread(void *arg)
{
	struct round *r = arg;

	pin_to(usable_cpu(1));
	r->phase = READY;
	while (r->phase != IN_GUEST)
		;
	r->phase = write_ldt(r->entry, 0x300) ? WRITTEN : FAILED;
	return NULL;
}

static u64 calls(void *arg)
{
	struct round *r = arg;

	for (int i = 0; i < EXITS; i++)
		hypercall0(SYS_getppid);
	r->phase = IN_GUEST;
	while (r->phase == IN_GUEST)
		hypercall0(SYS_getppid);
	for (int i = 0; i < EXITS; i++)
		hypercall0(SYS_getppid);
	return 0;
}

static void one_round(void *arg)
{
	struct round r = *(struct round *)arg;
	pthread_t thread;
	struct guest g;
	long limit;

	for (int i = 0; i < r.before; i++) {
		if (!write_ldt(i, 0x100))
			child_fails("modify_ldt() failed");
	}
	/* The threads must not meet on a CPU once the guest runs. */
	if (pthread_create(&thread, NULL, other_thread, &r))
		child_fails("pthread_create() failed");
	while (r.phase != READY)
		sleep_ms(1);
	pin_to(usable_cpu(0));
	guest_open(&g);
	if (guest_call(&g, calls, &r) != GUEST_DONE)
		child_fails("the guest did not return");
	limit = limit_of(r.entry);
	if (r.phase != WRITTEN)
		child_fails("the other thread did not change the LDT");
	if (limit != 0x300)
		child_fails("the limit of entry %d is %ld", r.entry, limit);
	_exit(0);
}

/* A context switch would hide a stale LDTR, and may happen in any one round. */
static void changes(int before, int entry, const char *what)
{
	struct round r = { .before = before, .entry = entry };
	struct outcome o = { 0 };

	if (usable_cpu(0) == usable_cpu(1)) {
		skip("one CPU", "%s", what);
		return;
	}
	for (int i = 0; i < 10 && outcome_is(o, 0); i++)
		o = in_child(one_round, &r, 20);
	ok(outcome_is(o, 0), "%s (%s)", what, outcome_text(o));
}

static u64 nap_and_call(void *arg)
{
	static const struct { long s, ns; } nap = { 0, 1000000 };

	hypercall0(SYS_getppid);
	hypercall3(SYS_nanosleep, (long)&nap, 0, 0);
	return hypercall0(SYS_getppid);
}

static void selectors(void *arg)
{
	u16 es, gs;
	struct guest g;

	if (!write_ldt(0, 0x100))
		child_fails("modify_ldt() failed");
	guest_open(&g);
	asm volatile("mov %0, %%es; mov %0, %%gs" : : "r"(SELECTOR(0)));
	if (guest_call(&g, nap_and_call, NULL) != GUEST_DONE)
		child_fails("the guest did not return");
	asm volatile("mov %%es, %0; mov %%gs, %1" : "=r"(es), "=r"(gs));
	diag("ES %#x, GS %#x", es, gs);
	if (es != SELECTOR(0) || gs != SELECTOR(0))
		child_fails("a selector changed");
}

int main(void)
{
	struct klog log;

	begin(120);
	klog_begin(&log);
	if (raw_syscall(SYS_modify_ldt, 0, 0, 0, 0, 0, 0)) {
		skip("no modify_ldt", "LDT");
		return done();
	}
	changes(0, 0, "the first LDT, made by another thread, is loaded after the run");
	changes(1, 0,
		"an LDT of which another thread has changed an entry is loaded after the run");
	changes(1, 1, "an LDT to which another thread has added an entry is loaded after the run");

	struct outcome o = in_child(selectors, NULL, 20);

	ok(outcome_is(o, 0), "ES and GS keep an LDT selector (%s)", outcome_text(o));
	klog_end(&log);
	return done();
}
