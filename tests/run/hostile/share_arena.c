// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Processes in the sandbox that share memory leave holes in the runtime's arena, where the kernel
 * could place a mapping of the program. Fails when there is one.
 */
#define _GNU_SOURCE
#include "child.h"
#include "hostile.h"
#include "maps.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
	volatile long result;
} *shared;

#define ARENA_END	(ARENA_BASE + ARENA_SIZE)	/* at first */

/* Returns how many holes the arena has, in each of which the kernel could place a mapping. */
static int holes_in_arena(void)
{
	unsigned long at = ARENA_BASE;
	FILE *mappings = open_mappings();
	struct mapping m;
	int holes = 0;

	while (next_mapping(mappings, &m)) {
		if (m.end <= at)
			continue;
		holes += m.start > at && at < ARENA_END;
		at = m.end;
	}
	return holes + (at < ARENA_END);
}

/* Returns how many a process with memory of its own finds. */
static int holes_in_copy(void)
{
	int status = -1;
	pid_t child = fork();

	if (!child)
		_exit(holes_in_arena());
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_holes(void)
{
	struct rlimit limit, low;
	pid_t child;

	shared->result = -1;
	child = vfork();
	if (!child) {
		shared->result = holes_in_copy();
		_exit(0);
	}
	waitpid(child, NULL, 0);
	is(shared->result, 0, "the arena has no hole in a child of a vfork child");

	/* With this limit the parent cannot replace the run page of the child that has ended. */
	getrlimit(RLIMIT_DATA, &limit);
	low = limit;
	low.rlim_cur = 4096;
	child = vfork();
	if (!child) {
		prlimit(getppid(), RLIMIT_DATA, &low, NULL);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	setrlimit(RLIMIT_DATA, &limit);
	is(holes_in_copy(), 0,
	   "the arena has no hole after a vfork child that lowered its parent's limit");
}

int main(void)
{
	shared = shared_alloc(sizeof(*shared));
	test_holes();
	return done();
}
