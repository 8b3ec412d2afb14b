// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * SOAK_COUNT (2000) times: fork, enter the guest, then exec or be killed at
 * a random moment, on two CPUs at once. Afterwards, memory and module references
 * are as before. Fails when the end of a process leaves any of them in use.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "machine.h"
#include "modules.h"
#include "tap.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int *ready;

static u64 spin(void *arg)
{
	*(volatile int *)arg = 1;
	for (;;)
		;
	return 0;
}

static u64 execs(void *arg)
{
	static char *argv[] = { "soak.t", "--exit", NULL };

	return hypercall3(SYS_execve, (long)"/proc/self/exe", (long)argv, 0);
}

static u64 sleeps(void *arg)
{
	*(volatile int *)arg = 1;
	return hypercall0(SYS_pause);
}

static bool one(long n, volatile int *flag)
{
	int status, pid;

	*flag = 0;
	pid = fork();
	if (!pid) {
		struct guest g;

		guest_open(&g);
		guest_call(&g, n % 4 == 1 ? execs : n % 4 == 2 ? sleeps : spin, (void *)flag);
		_exit(1);
	}
	if (pid < 0)
		return false;
	if (n % 4 != 1) {
		/* A third of them is killed before the guest runs. */
		if (n % 3)
			while (!*flag && !waitpid(pid, &status, WNOHANG))
				sched_yield();
		kill(pid, SIGKILL);
	}
	if (waitpid(pid, &status, 0) != pid)
		return false;
	return n % 4 == 1 ? WIFEXITED(status) && WEXITSTATUS(status) == 42 : WIFSIGNALED(status);
}

static void worker(void *arg)
{
	long which = (long)arg, n = env_number("SOAK_COUNT", 2000) / 2;

	pin_to(usable_cpu(which));
	for (long i = 0; i < n; i++) {
		if (!one(i, ready + which * 16))
			_exit(1);
	}
	_exit(0);
}

/* KB of memory that is free, or could be, once Dune's processes have ended. */
static long settled(void)
{
	dune_users_left();
	return memory_available();
}

int main(int argc, char **argv)
{
	long count = env_number("SOAK_COUNT", 2000);
	struct klog log;
	int pids[2];

	if (argc > 1 && !strcmp(argv[1], "--exit"))
		return 42;
	begin(240);
	klog_begin(&log);
	ready = shared_alloc(4096);
	for (int i = 0; i < 20; i++)
		one(i, ready);

	long before = settled(), slab = file_key("/proc/meminfo", "SUnreclaim");

	for (long i = 0; i < 2; i++) {
		pids[i] = fork();
		if (!pids[i])
			worker((void *)i);
	}
	for (int i = 0; i < 2; i++) {
		struct outcome o = wait_child(pids[i], 200);

		ok(o.code == 0, "worker %d: %ld forks, guests, execs and kills (%s)", i,
		   count / 2, outcome_text(o));
	}

	/*
	 * A lost page would be 4 KB each. Less than that comes and goes
	 * by itself: caches of the machine's file system, of 8 MB at times.
	 */
	long most = 1024 + count * 3;
	long after = settled(), slab2 = file_key("/proc/meminfo", "SUnreclaim");

	if (kernel_has("kasan_poison")) {
		skip("KASAN keeps what is freed", "memory is back after %ld processes", count);
		skip("KASAN keeps what is freed", "slab memory is back after %ld processes", count);
	} else {
		ok(before - after < most, "memory is back after %ld processes (%ld KB, now %ld KB)",
		   count,
		   before, after);
		ok(slab2 - slab < 512 + count,
		   "slab memory is back after %ld processes (%ld KB, now %ld KB)", count,
		   slab, slab2);
	}
	ok(file_number("/sys/module/dune/refcnt") == 0, "no reference to the module is left");
	klog_end(&log);
	return done();
}
