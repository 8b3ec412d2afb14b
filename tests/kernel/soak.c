// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * SOAK_COUNT (2000) times: fork, enter the guest, then exec or be killed at
 * a random moment, on two CPUs at once. Afterwards, memory and module references
 * are as before. Fails when the end of a process leaves any of them in use.
 */
#define _GNU_SOURCE
#include "child.h"
#include "cpu.h"
#include "guest.h"
#include "klog.h"
#include "modules.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"

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
	pid = checked_fork();
	if (!pid) {
		struct guest g;

		guest_open(&g);
		guest_call(&g, n % 4 == 1 ? execs : n % 4 == 2 ? sleeps : spin, (void *)flag);
		child_fails("a guest that never ends returned");
	}
	if (n % 4 != 1) {
		/* A third of them are killed before the guest runs. */
		if (n % 3)
			while (!*flag && !waitpid(pid, &status, WNOHANG))
				sched_yield();
		kill(pid, SIGKILL);
	}
	if (waitpid(pid, &status, 0) != pid)
		return false;
	return n % 4 == 1 ? WIFEXITED(status) && WEXITSTATUS(status) == 42 :
			    WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void worker(void *arg)
{
	long which = (long)arg, n = env_number("SOAK_COUNT", 2000) / 2;

	pin_to(usable_cpu(which));
	for (long i = 0; i < n; i++) {
		if (!one(i, ready + which * 16))
			child_fails("process %ld of worker %ld did not end as it must", i, which);
	}
	_exit(0);
}

/* One round: how the workers ended, and the KB that are missing afterwards. */
struct round {
	struct outcome ends[2];
	long memory, slab;
};

static struct round soak(void)
{
	struct round r;
	int pids[2];

	dune_users_left();
	r.memory = memory_available();
	r.slab = file_key("/proc/meminfo", "SUnreclaim");
	for (long i = 0; i < 2; i++) {
		pids[i] = checked_fork();
		if (!pids[i])
			worker((void *)i);
	}
	for (int i = 0; i < 2; i++)
		r.ends[i] = wait_child(pids[i], 200);
	dune_users_left();
	r.memory -= memory_available();
	r.slab = file_key("/proc/meminfo", "SUnreclaim") - r.slab;
	return r;
}

int main(int argc, char **argv)
{
	long count = env_number("SOAK_COUNT", 2000);
	bool keeps = kernel_has("kasan_poison");
	struct klog log;
	struct round r;
	int rounds = 0;

	if (argc > 1 && !strcmp(argv[1], "--exit"))
		return 42;
	begin(400);
	klog_begin(&log);
	ready = shared_alloc(4096);
	for (int i = 0; i < 20; i++) {
		if (!one(i, ready))
			bail("process %d did not end as it must", i);
	}

	/*
	 * A lost page for each process would be 4 KB. Use of memory by other programs, and
	 * caches of the machine's file system, vary; a leak appears each time.
	 */
	long most = 1024 + count * 3, most_slab = 512 + count;

	do {
		r = soak();
	} while (++rounds < 3 && !keeps && !r.ends[0].code && !r.ends[1].code &&
		 (r.memory >= most || r.slab >= most_slab));
	for (int i = 0; i < 2; i++)
		ok(r.ends[i].code == 0, "worker %d: %ld forks, guests, execs and kills (%s)", i,
		   count / 2, outcome_text(r.ends[i]));
	if (keeps) {
		skip("KASAN keeps what is freed", "memory is back after %ld processes", count);
		skip("KASAN keeps what is freed", "slab memory is back after %ld processes", count);
	} else {
		ok(r.memory < most, "memory is back after %ld processes (%ld KB are not, round %d)",
		   count, r.memory, rounds);
		ok(r.slab < most_slab,
		   "slab memory is back after %ld processes (%ld KB are not, round %d)", count,
		   r.slab, rounds);
	}
	ok(dune_users_now() == 0, "no reference to the module is left");
	klog_end(&log);
	return done();
}
