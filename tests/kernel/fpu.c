// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The guest's FPU registers are the thread's: they are restored after a switch
 * to a thread that uses them too. Fails when the module enters the guest without
 * loading them: the guest would then see another process's registers.
 *
 * A thread with a restartable sequence, which libc gives to each thread, returns
 * to user mode after each switch anyway, where the registers are loaded: the test
 * runs without one.
 */
#define _GNU_SOURCE
#include "child.h"
#include "cpu.h"
#include "guest.h"
#include "tap.h"
#include "timing.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLEEPS	50
#define MINE	0x1234567890abcdefUL

/* Returns how often the register had another value after a sleep. */
static u64 sleep_with_register(void *arg)
{
	u64 wrong = 0;

	for (int i = 0; i < SLEEPS; i++) {
		u64 value = MINE + i, after;

		asm volatile("movq %0, %%xmm5" : : "r"(value));
		hypercall3(SYS_nanosleep, (long)arg, 0, 0);
		asm volatile("movq %%xmm5, %0" : "=r"(after));
		wrong += after != value;
	}
	return wrong;
}

static void use_register(int parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (getppid() == parent)
		for (int i = 0; i < 1000; i++)
			asm volatile("movq %0, %%xmm5" : : "r"(~MINE));
	_exit(0);
}

int main(int argc, char **argv)
{
	struct timespec while_others_run = { 0, 2000000 };
	struct guest g;
	int parent = getpid();

	if (argc == 1 && !setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1))
		execl("/proc/self/exe", argv[0], "again", NULL);
	begin(60);
	pin_to(sched_getcpu());
	int other = checked_fork();

	if (!other)
		use_register(parent);
	guest_open(&g);
	bool finished = guest_call(&g, sleep_with_register, &while_others_run) == GUEST_DONE;

	ok(finished && g.value == 0,
	   "FPU registers are the thread's after %d sleeps while another uses them (%lu wrong)",
	   SLEEPS, (unsigned long)g.value);
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	return done();
}
