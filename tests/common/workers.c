// SPDX-License-Identifier: MIT OR Apache-2.0
/* Processes in Dune mode that check themselves: see workers.h. */
#define _GNU_SOURCE
#include "child.h"
#include "guest.h"
#include "registers.h"
#include "tap.h"
#include "timing.h"
#include "workers.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGES	32

enum finding {
	OK,
	MEMORY,
	REGISTERS,
	STALE,
	SYSCALL,
	ENDED,
};

struct worker {
	volatile u64 round;
	volatile u64 failure;
	volatile u64 detail;
	volatile u64 published;
	int pid;
} __attribute__((aligned(64)));

static struct worker *workers;
static volatile u64 *stamp;
static const struct timespec nap = { .tv_nsec = 1000000 };
static u64 pattern[PAGES][512] __attribute__((aligned(4096)));

static bool registers_survive(u64 x)
{
	u64 bad;

	asm volatile(FILL_REGISTERS
		     WAIT_IN_LOOP(5000)
		     COMPARE_REGISTERS
		     : "=&c"(bad)
		     : [x] "D"(x)
		     : FILLED_REGISTERS);
	return !bad;
}

static u64 fail(struct worker *w, enum finding found, u64 detail)
{
	w->detail = detail;
	w->failure = found;
	return found;
}

/* In the guest. */
static u64 work(void *arg)
{
	struct worker *w = arg;
	u64 self = hypercall0(SYS_getpid);

	for (u64 round = 1; ; round++) {
		for (u64 i = 0; i < PAGES; i++) {
			volatile u64 *p = &pattern[i][(round - 1) % 512];

			if (*p != (round == 1 ? 0 : self << 32 ^ i << 56 ^ (round - 1)))
				return fail(w, MEMORY, *p);
			pattern[i][round % 512] = self << 32 ^ i << 56 ^ round;
		}
		u64 published = w->published;
		u64 seen = stamp[0];

		if (seen < published)
			return fail(w, STALE, published << 32 | seen);
		if (!registers_survive(round * 0x9e3779b97f4a7c15))
			return fail(w, REGISTERS, round);
		if ((u64)hypercall0(SYS_getpid) != self)
			return fail(w, SYSCALL, self);
		w->round = round;
		/* Other threads want the CPU too, and each switch is a test. */
		if (round % 4 == 0)
			hypercall3(SYS_nanosleep, (long)&nap, 0, 0);
	}
}

static void *replace(void *arg)
{
	struct worker *w = arg;

	for (u64 n = 1; ; n++) {
		u64 *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (page == MAP_FAILED)
			child_fails("mmap: %m");
		page[0] = n;
		if (mremap(page, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, stamp) == MAP_FAILED)
			child_fails("mremap: %m");
		w->published = n;
		sleep_ms(5);
	}
}

static struct guest *running;

/* Prints which access the kernel refused. */
static void refused(int sig)
{
	const struct dune_run *run = running->run;

	diag("signal %d: fault address %#llx, flags %#x, guest at %#llx, stack %#llx", sig,
	     run->fault_address, run->fault_flags, run->regs.rip, run->regs.rsp);
	_exit(128 + sig);
}

static void worker(struct worker *w)
{
	pthread_t t;
	struct guest g;

	/* A KVM machine of the parent would live on in this process. */
	syscall(SYS_close_range, 3, ~0U, 0);
	running = &g;
	signal(SIGSEGV, refused);
	stamp = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stamp == MAP_FAILED)
		child_fails("mmap: %m");
	guest_open(&g);
	if (pthread_create(&t, NULL, replace, w))
		child_fails("pthread_create");
	enum guest_end end = guest_call(&g, work, w);

	diag("a Dune process ended: %s, failure %lu, %#lx", guest_end_name(&g, end),
	     w->failure, w->detail);
	_exit(1);
}

void workers_start(void)
{
	if (!workers)
		workers = shared_alloc(4096);
	memset(workers, 0, 4096);
	for (int i = 0; i < WORKERS; i++) {
		/* The memory is shared: only the parent writes the number. */
		int pid = checked_fork();

		if (!pid)
			worker(&workers[i]);
		workers[i].pid = pid;
	}
}

static const char *workers_failure(void)
{
	static const char *const names[] = {
		"well", "memory", "registers", "a stale page", "a system call", "ended",
	};
	static char text[100];

	for (int i = 0; i < WORKERS; i++) {
		struct worker *w = &workers[i];

		if (!w->failure)
			continue;
		snprintf(text, sizeof(text), "worker %d in round %lu: %s, %#lx", i, w->round + 1,
			 names[w->failure], w->detail);
		return text;
	}
	return "too slow";
}

static bool has_failed(struct worker *w)
{
	int status;

	if (!w->failure && waitpid(w->pid, &status, WNOHANG) == w->pid && !w->failure) {
		w->detail = status;
		w->failure = ENDED;
	}
	return w->failure;
}

bool workers_move(void)
{
	bool good = true;

	for (int i = 0; i < WORKERS; i++) {
		struct worker *w = &workers[i];
		u64 before = w->round;

		good &= WAIT_FOR(has_failed(w) || w->round >= before + 2, 5);
		good &= !w->failure;
	}
	if (!good)
		diag("Dune's workers: %s", workers_failure());
	return good;
}

bool workers_kill(void)
{
	bool good = true;

	for (int i = 0; i < WORKERS; i++) {
		if (workers[i].failure == ENDED)
			good = false;
		else
			kill(workers[i].pid, SIGKILL);
	}
	for (int i = 0; i < WORKERS; i++) {
		if (workers[i].failure != ENDED)
			good &= wait_child(workers[i].pid, 20).signal == SIGKILL;
	}
	return good;
}

static u64 some_calls(void *arg)
{
	volatile u64 *p = arg;

	for (int i = 0; i < 100; i++) {
		p[i] = hypercall0(SYS_getppid);
		if (p[i] != p[0])
			return 1;
	}
	return 0;
}

static u64 leave(void *arg)
{
	hypercall3(SYS_exit_group, 0, 0, 0);
	return 1;
}

static u64 forever(void *arg)
{
	for (;;)
		;
	return 1;
}

static void short_life(void *arg)
{
	static u64 numbers[100];
	struct guest g;

	guest_open(&g);
	if (guest_call(&g, some_calls, numbers) != GUEST_DONE || g.value)
		child_fails("the calls of a short Dune process failed");
	switch ((long)arg) {
	case 0:
		guest_close(&g);
		break;
	case 1:
		guest_call(&g, leave, NULL);
		child_fails("exit_group() by the guest returned");
	case 2:
		/* By signal, in the guest. */
		ualarm(3000, 0);
		guest_call(&g, forever, NULL);
		child_fails("a guest that never ends returned");
	}
}

bool worker_comes_and_goes(unsigned int which)
{
	struct outcome o = in_child(short_life, (void *)(long)(which % 3), 20);

	return which % 3 == 2 ? o.signal == SIGALRM : !o.code;
}
