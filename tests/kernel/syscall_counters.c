// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The counters of the run page, while a guest makes system calls. Fails when a call is not
 * counted as fast or slow, when the counters of the exits' kinds do not add up to that of all
 * exits, or when calls take the slow path that could take the fast one.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "tap.h"
#include "timing.h"

#include <sys/syscall.h>
#include <unistd.h>

static struct guest g;
static volatile int pid;

static u64 many_getpids(void *arg)
{
	for (long i = 0; i < (long)arg; i++) {
		if (hypercall0(SYS_getpid) != pid)
			return 1;
	}
	return 0;
}

static void counters(void)
{
	u64 before[DUNE_COUNT_MAX], d[DUNE_COUNT_MAX];
	const long n = 500;

	pid = getpid();
	guest_call(&g, many_getpids, (void *)1);
	for (int slow = 0; slow < 2; slow++) {
		for (int i = 0; i < DUNE_COUNT_MAX; i++)
			before[i] = g.run->counters[i];
		g.run->flags = slow ? DUNE_RUN_SLOW_SYSCALL : 0;
		guest_call(&g, many_getpids, (void *)n);
		for (int i = 0; i < DUNE_COUNT_MAX; i++)
			d[i] = g.run->counters[i] - before[i];

		long fast_calls = d[DUNE_COUNT_SYSCALL_FAST];
		long slow_calls = d[DUNE_COUNT_SYSCALL_SLOW];

		ok(fast_calls + slow_calls == n,
		   "counters: %ld calls are counted as %ld fast, %ld slow",
		   n, fast_calls, slow_calls);
		if (slow)
			ok(slow_calls == n && g.slow == n,
			   "counters: with DUNE_RUN_SLOW_SYSCALL all calls are slow");
		else
			ok(slow_calls <= n / 10, "counters: nearly all calls are fast (%ld slow)",
			   slow_calls);
		ok(d[DUNE_COUNT_HOSTCALL] == 1,
		   "counters: the guest's end is one hostcall (%s calls)", slow ? "slow" : "fast");

		u64 sum = d[DUNE_COUNT_SYSCALL_FAST] + d[DUNE_COUNT_SYSCALL_SLOW] +
			  d[DUNE_COUNT_FAULT] + d[DUNE_COUNT_INTERRUPT] +
			  d[DUNE_COUNT_EXCEPTION] + d[DUNE_COUNT_HOSTCALL] +
			  d[DUNE_COUNT_OTHER];

		ok(sum == d[DUNE_COUNT_EXITS],
		   "counters: exits are the sum of their kinds (%lu, %lu)", sum,
		   d[DUNE_COUNT_EXITS]);
	}
	g.run->flags = 0;
}

int main(void)
{
	begin(120);
	guest_open(&g);
	counters();
	guest_close(&g);
	return done();
}
