// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * One process in the sandbox makes a segment of shared memory between the runtime's check of
 * another process's shmat and the call itself. Fails when a segment is then attached over the
 * runtime.
 */
#define _GNU_SOURCE
#include "child.h"
#include "hostile.h"
#include "tap.h"

#include <signal.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
	volatile int done;	/* calls of shmat */
	volatile int found;	/* the number of the segment that comes next */
	volatile long result;
} *shared;

#define SEGMENT	(2UL << 20)
#define ROUNDS	300

static int next_id(int id)
{
	int index = (id & 0x7fff) + 1, sequence = id >> 15;

	return index < 64 ? sequence << 15 | index : (sequence + 1) << 15;
}

__attribute__((noreturn)) static void attach_over_range(void)
{
	for (;;) {
		void *at = shmat(shared->found, (void *)(SUPER_BASE - 4096),
				 SHM_REMAP | SHM_EXEC);

		shared->done++;
		if (at != (void *)-1) {
			shared->result = 1;
			_exit(0);
		}
	}
}

/* The other process stops between its calls, and finds another segment then. */
static void test_segment(void)
{
	int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0777);
	int child, round, before, hits = 0;

	shmctl(id, IPC_RMID, NULL);
	shared->found = next_id(id);
	child = fork();
	if (!child)
		attach_over_range();
	for (round = 0; round < ROUNDS && !shared->result; round++) {
		usleep(round * 7 % 1000);
		kill(child, SIGSTOP);
		waitpid(child, NULL, WUNTRACED);
		id = shmget(IPC_PRIVATE, SEGMENT, IPC_CREAT | 0777);
		hits += id == shared->found;
		before = shared->done;
		kill(child, SIGCONT);
		while (shared->done < before + 2 && !shared->result &&
		       !waitpid(child, NULL, WNOHANG))
			usleep(100);
		shmctl(id, IPC_RMID, NULL);
		shared->found = next_id(id);
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	ok(hits > ROUNDS / 2 && !shared->result,
	   "no segment is attached over the supervisor range, whenever it is made");
}

int main(void)
{
	shared = shared_alloc(sizeof(*shared));
	test_segment();
	return done();
}
