// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * No resource is left over: exit_group while other threads run or sleep in the guest, vCPUs that
 * never ran, memory over many cycles, unloading and loading. Fails when a reference to the module
 * is never dropped (rmmod reports busy for ever) or not taken (rmmod crashes the machine), when
 * memory is not given back, when a process with threads in the guest does not end as it does
 * natively, or when the module does not unload and load again.
 */
#define _GNU_SOURCE
#include "child.h"
#include "guest.h"
#include "klog.h"
#include "modules.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int *ready;

static u64 spin(void *arg)
{
	__atomic_fetch_add(ready, 1, __ATOMIC_SEQ_CST);
	for (;;)
		;
	return 0;
}

static u64 sleep_fast(void *arg)
{
	__atomic_fetch_add(ready, 1, __ATOMIC_SEQ_CST);
	return hypercall0(SYS_pause);
}

static u64 calls(void *arg)
{
	__atomic_fetch_add(ready, 1, __ATOMIC_SEQ_CST);
	for (;;)
		hypercall0(SYS_getppid);
	return 0;
}

static void *in_guest(void *arg)
{
	struct guest g;

	guest_open(&g);
	guest_call(&g, arg, NULL);
	return NULL;
}

static void *in_guest_slow(void *arg)
{
	struct guest g;

	guest_open(&g);
	g.run->flags = DUNE_RUN_SLOW_SYSCALL;
	guest_call(&g, arg, NULL);
	return NULL;
}

/* Five threads in the guest, in every state; then the process ends in one of several ways. */
static void threaded(void *arg)
{
	pthread_t t;

	*ready = 0;
	pthread_create(&t, NULL, in_guest, spin);
	pthread_create(&t, NULL, in_guest, sleep_fast);
	pthread_create(&t, NULL, in_guest_slow, sleep_fast);
	pthread_create(&t, NULL, in_guest, calls);
	pthread_create(&t, NULL, in_guest_slow, calls);
	while (*ready < 5)
		sleep_ms(1);
	sleep_ms(5);
	switch ((long)arg) {
	case 0:
		_exit(3);
	case 1:
		kill(getpid(), SIGKILL);
		break;
	case 2:
		kill(getpid(), SIGTERM);
		break;
	case 3:
		execl("/bin/sh", "sh", "-c", "exit 3", NULL);
		break;
	case 4:
		abort();
	case 5:
		/* The main thread ends, the others run until they are killed. */
		alarm(1);
		syscall(SYS_exit, 0);
	}
	sleep_ms(60000);
}

static u64 guest_exit_group(void *arg)
{
	hypercall3(SYS_exit_group, (long)arg, 0, 0);
	return 0;
}

static void exit_from_guest(void *arg)
{
	pthread_t t;

	*ready = 0;
	pthread_create(&t, NULL, in_guest, spin);
	pthread_create(&t, NULL, in_guest, sleep_fast);
	while (*ready < 2)
		sleep_ms(1);
	in_guest(guest_exit_group);
	child_fails("exit_group() by the guest returned");
}

static void unrun(void *arg)
{
	struct guest g[20];

	for (int i = 0; i < 20; i++)
		guest_open(&g[i]);
	for (int i = 0; i < 20; i += 2)
		guest_close(&g[i]);
}

static void cycle(void *arg)
{
	struct guest g;

	guest_open(&g);
	guest_call(&g, guest_return, NULL);
	if (arg)
		_exit(0);
	guest_close(&g);
}

static void leaks(void)
{
	long cycles = env_number("LIFETIME_CYCLES", 2000);

	for (int i = 0; i < 50; i++) {
		cycle(NULL);
		in_child(cycle, &i, 20);
	}
	if (kernel_has("kasan_poison")) {
		skip("KASAN keeps what is freed", "memory after %ld vCPUs", cycles);
		return;
	}

	long slab = 0, memory = 0;
	bool good = false;

	/* Use of memory by other programs varies; a leak appears each time. */
	for (int attempt = 0; attempt < 8 && !good; attempt++) {
		memory = memory_available();
		slab = file_key("/proc/meminfo", "SUnreclaim");
		for (long i = 0; i < cycles; i++)
			cycle(NULL);
		for (long i = 0; i < cycles / 5; i++)
			in_child(cycle, &i, 20);
		memory -= memory_available();
		slab = file_key("/proc/meminfo", "SUnreclaim") - slab;
		/* A lost page for each cycle would be 4 KB. */
		good = slab < cycles * 2 && memory < cycles * 3;
	}
	ok(good,
	   "memory is what it was after %ld vCPUs (%ld KB of it slab, %ld KB in all are gone)",
	   cycles, slab, memory);
	ok(dune_users_left() == 0, "nothing holds the module after %ld vCPUs", cycles);
}

static void module(void)
{
	struct guest g;
	int err;

	guest_open(&g);
	ok(dune_users_now() > 0, "a vCPU holds the module");
	ok(dune_unload() == -EWOULDBLOCK, "the module does not unload while a vCPU exists");
	guest_close(&g);
	ok(dune_users_left() == 0, "nothing holds the module once the vCPU is closed");

	int dev = open("/dev/dune", O_RDWR);

	ok(dune_unload() == -EWOULDBLOCK, "the module does not unload while the device is open");
	close(dev);
	if (access(dune_module(), R_OK))
		bail("%s: %s (DUNE_KO or DUNE_BUILD names another one)", dune_module(),
		     strerror(errno));
	for (int i = 0; i < 3; i++) {
		err = dune_unload();
		if (!ok(!err && !dune_is_loaded(), "the module unloads (%s)", strerror(-err)))
			return;
		ok(access("/dev/dune", F_OK) && !access("/sys", F_OK),
		   "/dev/dune disappears with the module");
		err = dune_load("");
		if (!ok(!err, "the module loads again (%s)", strerror(-err)))
			bail("without the module nothing more can be tested");
		struct outcome o = in_child(cycle, NULL, 20);

		ok(o.code == 0, "a guest runs after loading (%s)", outcome_text(o));
		dune_users_left();
	}
	ok(dune_insert("") == -EEXIST, "the module cannot be loaded twice");
}

int main(void)
{
	static const char *const ends[] = {
		"exit_group", "SIGKILL", "SIGTERM", "exec", "abort", "exit of the main thread",
	};
	static const int want[] = { 3, SIGKILL, SIGTERM, 3, SIGABRT, SIGALRM };
	struct klog log;

	begin(180);
	klog_begin(&log);
	ready = shared_alloc(4096);
	if (!dune_is_loaded())
		bail("the module is not loaded");
	if (dune_users_now() != 0)
		bail("the module is in use by another process");
	for (long i = 0; i < 6; i++) {
		for (int round = 0; round < 3; round++) {
			struct outcome o = in_child(threaded, (void *)i, 20);

			ok(!o.hung && (o.code == want[i] || o.signal == want[i]),
			   "%s with five threads in the guest (%s)", ends[i], outcome_text(o));
		}
		ok(dune_users_left() == 0, "nothing holds the module after %s", ends[i]);
	}
	struct outcome o = in_child(exit_from_guest, NULL, 20);

	ok(outcome_is(o, 0), "exit_group by a guest (%s)", outcome_text(o));
	o = in_child(unrun, NULL, 20);
	ok(o.code == 0, "a process with vCPUs that never ran ends normally (%s)", outcome_text(o));
	ok(dune_users_left() == 0, "nothing holds the module after vCPUs that never ran");
	leaks();
	module();
	klog_end(&log);
	return done();
}
