// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A child of fork has a copy of the library's locks, but not of the threads that hold
 * them. While one thread takes and releases all of them, another forks, and each child
 * calls functions that take them. Fails when a child does not end, or finds the data of
 * a lock half changed, or when the parent's threads cannot continue.
 */
#define _GNU_SOURCE
#include <dune.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tap.h"
#include "x86.h"

#define FORKS	200
/* Seconds until a child counts as one that waits for ever. */
#define LIMIT	60
/* Addresses that nothing else uses. */
#define WINDOW	0x300000000000UL
#define UNUSED	0x310000000000UL

static char *memory;
static volatile int stop;
/* The result of take_locks() in the other thread, or -1 if that could not enter. */
static volatile int other_failed;
static volatile unsigned long rounds;

static void on_signal(int sig)
{
}

/* Takes every lock of the library. Returns 0, or a number for the call that failed. */
static int take_locks(void)
{
	struct sigaction act = { .sa_handler = on_signal }, old;
	struct dune_stats stats;
	dune_pte *copy;
	void *page;

	page = dune_page_alloc(1);
	if (!page)
		return 1;
	dune_page_free(page, 1);
	if (dune_pt_map(dune_pt_root(), WINDOW, 2 * PAGE, (uint64_t)memory, DUNE_PT_RW))
		return 2;
	copy = dune_pt_clone(dune_pt_root());
	if (!copy || dune_pt_free(copy))
		return 3;
	if (sigaction(SIGUSR1, &act, &old) || old.sa_handler != on_signal)
		return 4;
	dune_stats(&stats);
	if (!stats.table_bytes)
		return 5;
	return 0;
}

static void *work(void *arg)
{
	other_failed = dune_enter(NULL) ? -1 : 0;
	while (!stop && !other_failed) {
		other_failed = take_locks();
		rounds++;
	}
	return arg;
}

/* Returns when the other thread has made one more round, or has failed. */
static void wait_for_other(void)
{
	unsigned long before = rounds;

	while (rounds == before && !other_failed)
		sched_yield();
}

__attribute__((noreturn)) static void child(void)
{
	int failed;

	alarm(LIMIT);
	failed = take_locks();
	if (!failed && dune_gpa(UNUSED) == ~0UL)
		failed = 6;
	_exit(failed);
}

int main(void)
{
	pthread_t other;
	int i, status = 0;
	pid_t pid;

	signal(SIGUSR1, on_signal);
	memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_create(&other, NULL, work, NULL);
	if (memory == MAP_FAILED || dune_enter(NULL))
		bail("dune_enter: %s", dune_enter_error());
	wait_for_other();
	for (i = 0; i < FORKS && !status; i++) {
		pid = fork();
		if (!pid)
			child();
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			break;
	}
	is(i, FORKS, "fork() alongside a thread that takes locks makes children that end");
	ok(!WIFSIGNALED(status), "no child waits for a lock for ever");
	is(WEXITSTATUS(status), 0, "the library's functions work in every child");

	wait_for_other();
	stop = 1;
	is(pthread_join(other, NULL), 0, "the other thread ends");
	is(other_failed, 0, "the library's functions work in the other thread");
	is(take_locks(), 0, "the library's functions work in the thread that forked");
	return done();
}
