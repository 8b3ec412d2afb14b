// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Threads that were made before one of them entered: each may enter, and has a
 * vCPU of its own. Fails when a fault or a signal of one thread arrives in another,
 * or is lost.
 */
#include <dune.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tap.h"
#include "x86.h"

#define ROUNDS	200

static pthread_barrier_t both;
static volatile int bad, faults[2], signals[2];
static __thread int me;
static __thread volatile char *mine;

static void on_fault(struct dune_tf *tf)
{
	(void)tf;
	faults[me]++;
	if (dune_pt_protect(dune_pt_root(), (uint64_t)mine, PAGE, DUNE_PT_RW))
		bad = 1;
}

static void on_signal(int sig)
{
	(void)sig;
	if (!dune_active())
		bad = 2;
	signals[me]++;
}

static void *work(void *arg)
{
	int i;

	me = (long)arg;
	pthread_barrier_wait(&both);
	if (dune_enter(NULL) || !dune_active())
		bad = 3;
	mine = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	dune_trap_set(DUNE_VECTOR_PF, on_fault, DUNE_TRAP_FPU);
	for (i = 0; i < ROUNDS; i++) {
		*mine = 0;
		if (dune_pt_protect(dune_pt_root(), (uint64_t)mine, PAGE, DUNE_PT_RO))
			bad = 4;
		*mine = 1;
		if (i % 10 == 0)
			pthread_kill(pthread_self(), SIGUSR1);
	}
	pthread_barrier_wait(&both);
	return arg;
}

int main(void)
{
	struct dune_stats stats;
	pthread_t other;
	void *result;

	signal(SIGUSR1, on_signal);
	pthread_barrier_init(&both, NULL, 2);
	pthread_create(&other, NULL, work, (void *)1L);
	work(NULL);
	is(bad, 0, "two threads enter Dune mode and handle their faults");
	is(faults[0], ROUNDS, "the first thread has all of its faults");
	is(faults[1], ROUNDS, "the second thread has all of its faults");
	is(signals[0], ROUNDS / 10, "the first thread has all of its signals");
	is(signals[1], ROUNDS / 10, "the second thread has all of its signals");
	dune_stats(&stats);
	is(stats.signals, 2 * ROUNDS / 10, "the signals of both threads are counted");
	is(pthread_join(other, &result), 0, "the second thread ends");
	is((long)result, 1, "the second thread ends with its result");
	return done();
}
