// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A child of vfork shares its parent's memory, the library's locks included, and may be
 * killed while it holds one. Fails when the parent then waits for this lock for ever, or
 * finds the data of a lock half changed.
 */
#define _GNU_SOURCE
#include <dune.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "child.h"
#include "tap.h"
#include "x86.h"

#define ROUNDS	150
/* Seconds of one round until the parent counts as one that waits for ever. */
#define LIMIT	60
#define WINDOW	0x300000000000UL

/* In memory that is shared with the process that kills. */
static struct shared {
	volatile pid_t victim;
	volatile int rounds;
} *shared;
static char *memory;

static void on_signal(int sig)
{
}

static void on_signal_too(int sig)
{
}

static int change_action(void)
{
	struct sigaction act = { .sa_handler = on_signal }, old;

	if (sigaction(SIGUSR1, &act, &old) ||
	    (old.sa_handler != on_signal && old.sa_handler != on_signal_too))
		return 1;
	act.sa_handler = on_signal_too;
	return sigaction(SIGUSR1, &act, NULL) ? 2 : 0;
}

static int change_tables(void)
{
	void *page = dune_page_alloc(1);
	dune_pte *copy;

	if (!page)
		return 3;
	dune_page_free(page, 1);
	if (dune_pt_map(dune_pt_root(), WINDOW, 2 * PAGE, (uint64_t)memory, DUNE_PT_RW))
		return 4;
	copy = dune_pt_clone(dune_pt_root());
	return !copy || dune_pt_free(copy) ? 5 : 0;
}

/* Makes a child with a copy of memory, and waits until that has ended. */
static int copy_memory(void)
{
	long pid = syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);

	if (!pid)
		_exit(0);
	return waitpid(pid, NULL, 0) == pid ? 0 : 6;
}

/* The calls in one of which the child is killed. The child's argument leads to one of them. */
static int (*calls[])(void) = { change_action, change_tables, copy_memory };

static int work(void *arg)
{
	int (**call)(void) = arg;

	shared->victim = getpid();
	for (;;)
		(*call)();
	return 0;
}

/* Kills each child after another time, until it is killed itself. */
__attribute__((noreturn)) static void kill_victims(void)
{
	unsigned int i;
	pid_t pid;

	for (i = 0;; i++) {
		while (!shared->victim)
			usleep(100);
		usleep(i * 37 % 1000);
		pid = shared->victim;
		shared->victim = 0;
		kill(pid, SIGKILL);
	}
}

/* The parent of the children. Returns 0, or the number of the call that failed. */
static int run(int flags, void *arg)
{
	static char stack[65536] __attribute__((aligned(16)));
	int failed = 0, status;
	pid_t pid;

	signal(SIGUSR1, on_signal);
	if (dune_enter(NULL))
		child_fails("dune_enter() failed");
	for (shared->rounds = 0; shared->rounds < ROUNDS && !failed; shared->rounds++) {
		alarm(LIMIT);
		pid = clone(work, stack + sizeof(stack),
			    CLONE_VM | CLONE_VFORK | flags | SIGCHLD, arg);
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			child_fails("clone() or waitpid() failed");
		if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
			child_fails("the child was not ended by SIGKILL");
		failed = change_action();
		if (!failed)
			failed = change_tables();
	}
	return failed;
}

static void test(int flags, void *arg, const char *what)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid)
		_exit(run(flags, arg));
	waitpid(pid, &status, 0);
	if (!is(shared->rounds, ROUNDS, "the parent continues when a child is killed %s", what) &&
	    WIFSIGNALED(status))
		diag("the parent was ended by signal %d", WTERMSIG(status));
	is(WEXITSTATUS(status), 0, "the parent's calls succeed when a child is killed %s", what);
}

int main(void)
{
	pid_t killer;

	shared = shared_alloc(sizeof(*shared));
	memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		bail("mmap");
	killer = fork();
	if (!killer)
		kill_victims();
	test(CLONE_SIGHAND, &calls[0], "in rt_sigaction() of actions that both share");
	test(0, &calls[0], "in rt_sigaction()");
	test(0, &calls[1], "while it changes page tables");
	test(0, &calls[2], "in clone() with CLONE_VFORK");
	kill(killer, SIGKILL);
	return done();
}
