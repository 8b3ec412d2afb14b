// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Another thread writes random numbers to the run page, or to the guest's tables, while
 * the guest runs. Each runs in a child (isolated.h). Fails when the kernel warns, crashes or
 * hangs, or when the parent's own guest does not run afterwards.
 *
 * A field that the kernel reads twice is found only if the second value has such an effect, and
 * only if the thread runs between the two reads: on another CPU, or where the kernel can be
 * preempted.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "isolated.h"
#include "random.h"
#include "tap.h"

#include <pthread.h>
#include <signal.h>

static void start_thread(void *(*fn)(void *arg), void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, fn, arg))
		child_fails("a thread cannot be made");
}

static void *scribble(void *arg)
{
	volatile u64 *p = arg;
	u64 x = 0x9e3779b97f4a7c15;

	for (;;) {
		for (int i = 0; i < 512; i++) {
			x = next_random(x);
			p[i] = x;
		}
	}
	return NULL;
}

static void scribbled_run_page(void)
{
	start_thread(scribble, g.run);
	end_after(600);
	for (;;) {
		guest_set_state(&g, &g.state);
		guest_run(&g);
	}
}

static void *scribble_tables(void *arg)
{
	struct guest_memory *m = arg;
	u64 x = 0x9e3779b97f4a7c15;

	for (;;) {
		x = next_random(x);
		m->pdpt[x % GUEST_PDPTS][x >> 10 & 511] = x ^ x << 20;
		m->gdt[x >> 20 & 15] = x * 3;
		m->idt[x >> 24 & 511] = x * 5;
	}
	return NULL;
}

static void scribbled_tables(void)
{
	start_thread(scribble_tables, g.mem);
	end_after(600);
	for (;;) {
		guest_prepare(&g, 0, ud2, NULL);
		guest_run(&g);
	}
}

static const struct isolated guests[] = {
	/* Random calls with random arguments may end it in any way. */
	{ "run page scribbled by a thread", scribbled_run_page, ANY_END },
	{ "tables scribbled by a thread", scribbled_tables, SIGALRM },
};

int main(int argc, char **argv)
{
	return isolated_main(argc, argv, guests, sizeof(guests) / sizeof(guests[0]));
}
