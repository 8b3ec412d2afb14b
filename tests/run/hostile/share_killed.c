// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A process in the sandbox is killed while another one uses the same memory. Fails when a vfork
 * child can make a vfork child of its own, which would outlive it in its parent's memory, or
 * when a mapping stays in the supervisor range that a killed vfork child began there.
 */
#define _GNU_SOURCE
#include "child.h"
#include "hostile.h"
#include "maps.h"
#include "tap.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
	volatile int ready;
	volatile long result;
	volatile int found;
} *shared;

/* SIGKILL ends the wait for a vfork child, so a vfork child of the child's would live on. */
static void test_grandchild(void)
{
	int child = vfork();

	if (!child) {
		int grandchild = vfork();

		if (!grandchild)
			_exit(0);
		shared->result = grandchild < 0 ? -errno : grandchild;
		_exit(0);
	}
	waitpid(child, NULL, 0);
	ok(shared->result == -ENOSYS, "a vfork child cannot vfork");
}

#define FILE_BYTES	(96L << 20)

/* Whether something is mapped where the runtime of this program has nothing. */
static int mapped_in_super_range(void)
{
	FILE *mappings = open_mappings();
	struct mapping m;
	int n = 0;

	while (next_mapping(mappings, &m))
		n += m.start >= VECTOR_BASE && in_super_range(m.start);
	return n;
}

/*
 * Takes all room but that of the runtime, and has a vfork child killed while the kernel
 * fills a mapping for it there. Returns 1 and stores how many mappings the parent has
 * there then, or returns 0 if the kill came too early or too late.
 */
static int kill_in_mmap(int file, int delay, int *left)
{
	pid_t killer, child;
	volatile int *step = &shared->ready;

	shared->found = 0;
	*step = 0;
	killer = fork();
	if (!killer) {
		while (!shared->found)
			usleep(500);
		usleep(delay);
		kill(shared->found, SIGKILL);
		_exit(0);
	}
	for (unsigned long size = 1UL << 46; size >= 4096; size >>= 1)
		while (call(SYS_mmap, 0, size, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) > 0)
			;
	child = vfork();
	if (!child) {
		*step = 1;
		shared->found = call(SYS_getpid, 0, 0, 0, 0, 0, 0);
		call(SYS_mmap, 0, FILE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
		     MAP_SHARED | MAP_POPULATE, file, 0);
		*step = 2;
		for (;;)
			call(SYS_pause, 0, 0, 0, 0, 0, 0);
	}
	waitpid(child, NULL, 0);
	waitpid(killer, NULL, 0);
	*left = mapped_in_super_range();
	return *step == 1;
}

static void test_killed_mapping(void)
{
	int file = call(SYS_memfd_create, (long)"file", 0, 0, 0, 0, 0), status = 0, left, i;

	if (ftruncate(file, FILE_BYTES))
		bail("a file in memory: %s", strerror(errno));
	/* Each try in a process of its own, which has no room left afterwards. */
	for (i = 0; i < 8 && !status; i++) {
		fflush(stdout);
		if (!fork())
			_exit(kill_in_mmap(file, 3000 << i, &left) ? 1 + !left : 0);
		wait(&status);
	}
	if (!status)
		skip("no kill came in time", "a mapping that a killed vfork child began is gone");
	else
		ok(WIFEXITED(status) && WEXITSTATUS(status) == 2,
		   "a mapping that a killed vfork child began is gone");
	close(file);
}

int main(void)
{
	shared = shared_alloc(sizeof(*shared));
	test_grandchild();
	test_killed_mapping();
	return done();
}
