// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A guest that never leaves is to RCU what a program in a loop is: a grace
 * period of RCU tasks ends while it runs. Ftrace waits for one before it frees
 * the trampoline of a tracer. Fails in a fully preemptible kernel (--mode
 * preempt) when the run loop does not tell RCU of the guest: the preemption at
 * an interrupt's end is not voluntary, and the tick finds the thread in the
 * kernel.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "machine.h"
#include "tap.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRACING		"/sys/kernel/tracing"
#define INSTANCE	TRACING "/instances/dune-rcu"
#define PATIENCE	60	/* seconds at least; a grace period takes one or two */

/*
 * A thread no longer holds up the grace period once a tick finds it in user
 * mode, and a guest's may be there by chance: DUNE_RUN returns now and then for
 * work that the scheduler leaves behind. One thread could be found there within
 * seconds (6.12), but not all of these within a minute.
 */
#define SPINNERS	16

static int *spinning;

static u64 spin(void *arg)
{
	(void)arg;
	__atomic_add_fetch(spinning, 1, __ATOMIC_RELAXED);
	for (;;)
		asm volatile("pause");
	return 0;
}

static void *spin_in_guest(void *arg)
{
	struct guest g;

	(void)arg;
	guest_open(&g);
	guest_call(&g, spin, NULL);
	_exit(1);
}

static int spinners(void)
{
	int pid = fork();
	pthread_t t;

	if (pid)
		return pid;
	nice(19);
	for (int i = 1; i < SPINNERS; i++)
		pthread_create(&t, NULL, spin_in_guest, NULL);
	spin_in_guest(NULL);
	_exit(1);
}

static bool trace(void)
{
	return !file_write(INSTANCE "/set_ftrace_filter", "vfs_fsync") &&
	       !file_write(INSTANCE "/current_tracer", "function");
}

/*
 * Stop tracing, in a child @pid, which dies of no signal before the grace period
 * is over: after how many microseconds it had ended, or @limit if it had not.
 */
static unsigned long untrace(unsigned long limit, int *pid)
{
	unsigned long start = now_us(), took;
	int status;

	*pid = fork();
	if (!*pid)
		_exit(file_write(INSTANCE "/current_tracer", "nop") ? 1 : 0);
	do {
		sleep_ms(10);
		took = now_us() - start;
		if (waitpid(*pid, &status, WNOHANG)) {
			*pid = 0;
			return status ? limit : took;
		}
	} while (took < limit);
	return limit;
}

int main(int argc, char **argv)
{
	unsigned long took, limit = PATIENCE * 1000000UL;
	struct klog log;
	int guests, pid;

	/* With restartable sequences each switch of threads is such work. */
	if (argc == 1 && !setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1))
		execl("/proc/self/exe", argv[0], "again", NULL);
	begin(600);
	klog_begin(&log);
	mount("tracefs", TRACING, "tracefs", 0, NULL);
	if ((mkdir(INSTANCE, 0700) && errno != EEXIST) ||
	    access(INSTANCE "/set_ftrace_filter", W_OK)) {
		skip("no function tracer", "grace periods while guests spin");
		rmdir(INSTANCE);
		return done();
	}
	ok(trace(), "a function is traced");
	took = untrace(limit, &pid);
	ok(took < limit, "tracing ends when nobody spins (%lu ms)", took / 1000);
	if (10 * took > limit)
		limit = 10 * took;
	spinning = shared_alloc(sizeof(*spinning));
	guests = spinners();
	for (int ms = 0; *(volatile int *)spinning < SPINNERS && ms < 60000; ms++)
		sleep_ms(1);
	ok(*spinning == SPINNERS, "%d guests spin", *spinning);
	ok(trace(), "a function is traced");
	took = untrace(limit, &pid);
	ok(took < limit, "tracing ends while guests spin (%lu of %lu ms)", took / 1000,
	   limit / 1000);
	ok(!kill(guests, 0), "which they still do");
	kill(guests, SIGKILL);
	ok(wait_child(guests, 20).signal == SIGKILL, "the guests are killed");
	if (pid)
		waitpid(pid, NULL, 0);
	rmdir(INSTANCE);
	klog_read(&log);
	ok(!log.complaint, "the kernel log has no complaint %s", log.first);
	return done();
}
