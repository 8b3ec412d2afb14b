// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A child that shares memory (as vfork's) forks, and the process that it has made is an ordinary
 * one: it has its own actions of signals, and makes such a child itself, for four generations.
 * signals.bash fails when what this prints differs between the native run and the one in the
 * sandbox.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define GENERATIONS	4

static volatile int generation, caught;

static void on_signal(int sig)
{
	caught += sig;
}

static int status_of(pid_t child)
{
	int status = -1;

	waitpid(child, &status, 0);
	return status;
}

static int spawn_true(void)
{
	char *const argv[] = { "true", NULL }, *const environment[] = { NULL };
	pid_t child;
	int err = posix_spawn(&child, "/bin/true", NULL, NULL, argv, environment);

	return err ? err : status_of(child);
}

static void live(void);

/* The child that shares memory. Its handler is its own. */
static int share(void *unused)
{
	pid_t child;

	signal(SIGUSR2, on_signal);
	child = fork();
	if (!child) {
		generation++;
		live();
		_exit(generation);
	}
	_exit(WEXITSTATUS(status_of(child)));
}

/* What each generation does. */
static void live(void)
{
	static char stack[GENERATIONS][65536];
	struct sigaction old;
	int spawned = spawn_true();
	pid_t child;

	sigaction(SIGUSR2, NULL, &old);
	caught = 0;
	raise(SIGUSR1);
	if (old.sa_handler == on_signal)
		raise(SIGUSR2);
	printf("generation %d: posix_spawn %s, signals %d\n", generation, strerror(spawned),
	       caught);
	fflush(stdout);
	if (generation == GENERATIONS)
		return;
	child = clone(share, stack[generation] + sizeof(stack[0]),
		      CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
	if (child < 0)
		perror("clone");
	else
		printf("generation %d: status %d\n", generation, WEXITSTATUS(status_of(child)));
	fflush(stdout);
}

int main(void)
{
	signal(SIGUSR1, on_signal);
	live();
	return 0;
}
