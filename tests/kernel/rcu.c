// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A guest that never leaves is to RCU the same as a program in a loop: a grace
 * period of RCU tasks ends while it runs. Ftrace waits for one before it frees
 * the trampoline of a tracer. Fails in a fully preemptible kernel (--mode
 * preempt) when the run loop does not report the guest to RCU: the preemption at
 * an interrupt's end is not voluntary, and the tick finds the thread in the
 * kernel.
 */
#define _GNU_SOURCE
#include "child.h"
#include "guest.h"
#include "klog.h"
#include "tap.h"
#include "timing.h"
#include "tracing.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define INSTANCE	"instances/dune-rcu"
#define LIMIT_S	60	/* at least; a grace period takes one or two seconds */

/*
 * A thread no longer holds up the grace period once a tick finds it in user
 * mode, and a guest's thread may be there by chance: DUNE_RUN returns now and then
 * for work that the scheduler leaves to be done. One thread could be found there
 * within seconds (6.12), but not all of these within a minute.
 */
#define SPINNERS	16

static int *spinning;

static u64 spin(void *arg)
{
	__atomic_add_fetch(spinning, 1, __ATOMIC_RELAXED);
	for (;;)
		asm volatile("pause");
	return 0;
}

__attribute__((noreturn)) static void *spin_in_guest(void *arg)
{
	struct guest g;

	guest_open(&g);
	guest_call(&g, spin, NULL);
	child_fails("a guest that spins returned");
}

static int spinners(void)
{
	int pid = checked_fork();
	pthread_t t;

	if (pid)
		return pid;
	nice(19);
	for (int i = 1; i < SPINNERS; i++)
		pthread_create(&t, NULL, spin_in_guest, NULL);
	spin_in_guest(NULL);
}

static bool trace_function(void)
{
	return !trace_write(INSTANCE "/set_ftrace_filter", "vfs_fsync") &&
	       !trace_write(INSTANCE "/current_tracer", "function");
}

/*
 * Stop tracing, in a child @pid, which no signal ends before the grace period is
 * over. Returns after how many microseconds it had ended, or @limit if it had not.
 */
static unsigned long untrace(unsigned long limit, int *pid)
{
	unsigned long start = now_us(), took;
	int status;

	*pid = checked_fork();
	if (!*pid)
		_exit(trace_write(INSTANCE "/current_tracer", "nop") ? 1 : 0);
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
	unsigned long took, limit = LIMIT_S * 1000000UL;
	struct klog log;
	int guests, pid;

	/* With restartable sequences each switch of threads is such work. */
	if (argc == 1 && !setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1))
		execl("/proc/self/exe", argv[0], "again", NULL);
	begin(400);
	klog_begin(&log);
	trace_mount("instances");
	if ((mkdir(TRACING INSTANCE, 0700) && errno != EEXIST) ||
	    access(TRACING INSTANCE "/set_ftrace_filter", W_OK)) {
		skip("no function tracer", "grace periods while guests spin");
		rmdir(TRACING INSTANCE);
		return done();
	}
	ok(trace_function(), "a function is traced before guests run");
	took = untrace(limit, &pid);
	ok(took < limit, "tracing ends while no guest runs (%lu ms)", took / 1000);
	if (10 * took > limit)
		limit = 10 * took;
	spinning = shared_alloc(sizeof(*spinning));
	guests = spinners();
	WAIT_FOR(*(volatile int *)spinning >= SPINNERS, 15);
	ok(*spinning == SPINNERS, "%d guests spin", *spinning);
	ok(trace_function(), "a function is traced while guests run");
	took = untrace(limit, &pid);
	ok(took < limit, "tracing ends while guests spin (%lu of %lu ms)", took / 1000,
	   limit / 1000);
	ok(!kill(guests, 0), "the guests still run after tracing has ended");
	kill(guests, SIGKILL);
	ok(wait_child(guests, 20).signal == SIGKILL, "the guests are killed");
	if (pid)
		waitpid(pid, NULL, 0);
	rmdir(TRACING INSTANCE);
	klog_end(&log);
	return done();
}
