// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Vfork children of a process in the sandbox are killed while the runtime's arena grows, and the
 * kernel has placed the vDSO where it grows. Fails when the arena takes over memory that it has
 * not mapped: a later child then dies of an access to a hole, in which the kernel could place a
 * mapping of the program.
 */
#define _GNU_SOURCE
#include "hostile.h"
#include "maps.h"
#include "tap.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN	40
#define REGIONS		240	/* of 512 GB: the tables for one address in each fill the arena */
#define ARENA_END	(ARENA_BASE + ARENA_SIZE)	/* at first */
#define STEP		0x100000UL
#define TOP		0x7ffffffff000UL	/* of a process's addresses */

static struct {
	volatile int child, stop, next;
} *shared;

/* The kernel places mappings below the room that the stack may need: here below STEP's end. */
static void move_mappings(char **argv)
{
	struct rlimit stack;

	getrlimit(RLIMIT_STACK, &stack);
	stack.rlim_cur = TOP - (ARENA_END + STEP) - STEP;
	personality(ADDR_NO_RANDOMIZE);
	if (setrlimit(RLIMIT_STACK, &stack))
		return;
	execl(argv[0], argv[0], "moved", NULL);
}

static bool something_is_in_step(void)
{
	FILE *mappings = open_mappings();
	struct mapping m;
	bool found = false;

	while (next_mapping(mappings, &m))
		found |= m.start >= ARENA_END && m.start < ARENA_END + STEP;
	return found;
}

/* Kills each child some milliseconds after it has begun. */
static void kill_children(void)
{
	unsigned int random = 1;

	while (!shared->stop) {
		int child = shared->child;

		if (child) {
			random = random * 1103515245 + 12345;
			usleep(1500 + (random >> 12) % 9000);
			shared->child = 0;
			kill(child, SIGKILL);
		}
		usleep(200);
	}
	_exit(0);
}

static void read_in_region(int region)
{
	fault_of(read_byte, (void *)(((unsigned long)region << 39) + (77UL << 30)));
}

/* Uses the arena up, and then makes it try to grow until the child is killed. */
static int one_child(void)
{
	int status, child = vfork();

	if (!child) {
		shared->child = call(SYS_getpid, 0, 0, 0, 0, 0, 0);
		for (; shared->next < REGIONS; shared->next++)
			if (shared->next != SUPER_BASE >> 39)
				read_in_region(shared->next);
		for (;;)
			read_in_region(REGIONS);
	}
	waitpid(child, &status, 0);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

int main(int argc, char **argv)
{
	int sig = SIGKILL, n;
	pid_t killer;

	if (argc == 1)
		move_mappings(argv);
	/* mmap() finds no room by itself. */
	shared = mmap((void *)0x20000000, 4096, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (shared == MAP_FAILED)
		bail("mmap: %m");
	if (!something_is_in_step()) {
		skip("the kernel places nothing there", "the arena grows next to the vDSO");
		return done();
	}
	fflush(stdout);
	killer = fork();
	if (!killer)
		kill_children();
	for (n = 0; n < CHILDREN && sig == SIGKILL; n++)
		sig = one_child();
	shared->stop = 1;
	waitpid(killer, NULL, 0);
	is(sig, SIGKILL, "children are killed while the arena grows, and die of nothing else");
	return done();
}
