// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Threads that stay outside the guest, in a process with threads inside. Fails when one of
 * them cannot use the library as dune.h describes, or when a handler of its signals does not run
 * on its alternate stack.
 */
#define _GNU_SOURCE
#include <dune.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "child.h"
#include "rings.h"
#include "tap.h"

#define CALLS	20000		/* of each thread with a small stack */
#define SMALL	6
#define ALT	65536		/* bytes of an alternate stack */

/* Two threads wait here, when what one of them waits for has happened. */
static pthread_barrier_t ready;

/* Enters, and stays until the process ends. */
static void *enter(void *arg)
{
	if (dune_enter(NULL))
		bail("dune_enter: %s", dune_enter_error());
	pthread_barrier_wait(&ready);
	pause();
	return arg;
}

static void start(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	if (pthread_create(thread, NULL, fn, arg))
		bail("a thread cannot be made");
}

static void start_inside(void)
{
	pthread_t thread;

	start(&thread, enter, NULL);
	pthread_barrier_wait(&ready);
}

/* ---- threads whose stacks share 64 KB ----------------------------------- */

/* Of each thread with a small stack, the number of the 64 KB that have this stack. */
static uintptr_t stacks[SMALL];

static void *allocate(void *arg)
{
	uintptr_t *stack = arg;
	int i;

	*stack = (uintptr_t)__builtin_frame_address(0) / 65536;
	for (i = 0; i < CALLS; i++)
		dune_page_free(dune_page_alloc(1), 1);
	return NULL;
}

static bool two_are_equal(void)
{
	int i, j;

	for (i = 0; i < SMALL; i++)
		for (j = 0; j < i; j++)
			if (stacks[i] == stacks[j])
				return true;
	return false;
}

static void small_stacks(void *arg)
{
	pthread_t small[SMALL];
	pthread_attr_t attr;
	int i;

	start_inside();
	pthread_attr_init(&attr);
	if (pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN))
		child_fails("a stack cannot be small");
	for (i = 0; i < SMALL; i++)
		if (pthread_create(&small[i], &attr, allocate, &stacks[i]))
			child_fails("a thread cannot be made");
	for (i = 0; i < SMALL; i++)
		pthread_join(small[i], NULL);
	if (!two_are_equal())
		child_fails("no two stacks share 64 KB");
}

/* ---- alternate stacks --------------------------------------------------- */

static char *volatile sp_of_handler;

static void note_sp(int sig)
{
	(void)sig;
	sp_of_handler = __builtin_frame_address(0);
}

static void use_altstack(char *alt)
{
	stack_t ss = { .ss_sp = alt, .ss_size = ALT };

	sigaltstack(&ss, NULL);
}

/* Returns whether the handler of SIGUSR1 runs on the alternate stack @alt. */
static bool handled_on(char *alt)
{
	sp_of_handler = NULL;
	raise(SIGUSR1);
	return sp_of_handler >= alt && sp_of_handler < alt + ALT;
}

/* ---- calls -------------------------------------------------------------- */

/* The root of a thread inside, and what the thread outside has found. */
static struct {
	dune_pte *inside_root;
	dune_pte *root, *copy;
	int without_root, load, split, free;
	bool on_altstack;
} outside;

static void *stay(void *arg)
{
	uint64_t va = (uint64_t)mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static char alt[ALT];

	use_altstack(alt);
	pthread_barrier_wait(&ready);
	outside.on_altstack = handled_on(alt);
	outside.root = dune_pt_root();
	outside.without_root = dune_pt_unmap(outside.root, va, PAGE);
	outside.load = dune_pt_load(outside.inside_root, 0);
	outside.split = dune_pt_split(outside.inside_root, va, PAGE, PAGE);
	outside.copy = dune_pt_clone(outside.inside_root);
	outside.free = dune_pt_free(outside.copy);
	return arg;
}

static void test_outside(pthread_t thread)
{
	outside.inside_root = dune_pt_root();
	pthread_barrier_wait(&ready);
	pthread_join(thread, NULL);
	ok(outside.on_altstack, "a thread outside handles a signal on its alternate stack");
	ok(!outside.root, "dune_pt_root() outside: NULL");
	is(outside.without_root, -EPERM, "dune_pt_unmap() without a root: EPERM");
	is(outside.load, -EPERM, "dune_pt_load() outside: EPERM");
	is(outside.split, 0, "dune_pt_split() outside, with the root of a thread inside");
	ok(outside.copy, "dune_pt_clone() outside, with the root of a thread inside");
	is(outside.free, 0, "dune_pt_free() outside");
}

int main(void)
{
	struct sigaction on_alt = { .sa_handler = note_sp, .sa_flags = SA_ONSTACK };
	static char alt[ALT];
	pthread_t thread;

	pthread_barrier_init(&ready, NULL, 2);
	ok(outcome_is(in_child(small_stacks, NULL, 60), 0),
	   "threads outside whose stacks share 64 KB use the arena at the same time");
	sigaction(SIGUSR1, &on_alt, NULL);
	use_altstack(alt);
	start_inside();
	start(&thread, stay, NULL);
	must_enter(NULL);
	ok(handled_on(alt), "the alternate stack from before dune_enter() is used");
	test_outside(thread);
	return done();
}
