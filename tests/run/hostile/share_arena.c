// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Processes in the sandbox that share memory leave holes in the runtime's arena, where the kernel
 * could place a mapping of the program, or copies that only one of them needed. Fails when there
 * is a hole or a copy.
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

#define WORDS	4000	/* more than run/load/exec.c keeps without a mapping */

/* The vectors for execve, which the runtime maps in the memory of parent and child. */
static void test_vectors(void)
{
	static char *words[WORDS + 1];
	FILE *mappings;
	struct mapping m;
	int i, left, status = -1;
	pid_t child;

	for (i = 0; i < WORDS; i++)
		words[i] = "x";
	child = vfork();
	if (!child) {
		execve("/bin/true", words, words);
		_exit(1);
	}
	waitpid(child, &status, 0);
	is(status, 0, "a vfork child executes a program with thousands of arguments");
	left = 0;
	mappings = open_mappings();
	while (next_mapping(mappings, &m))
		left += m.start >= VECTOR_BASE && in_super_range(m.start);
	is(left, 0, "the parent has no copy of these arguments afterwards");
}

int main(void)
{
	shared = shared_alloc(sizeof(*shared));
	test_holes();
	test_vectors();
	return done();
}
