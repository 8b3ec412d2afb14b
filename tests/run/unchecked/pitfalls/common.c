// SPDX-License-Identifier: MIT OR Apache-2.0
/* What the rows of pitfalls.h use. */
#define _GNU_SOURCE
#include "pitfalls.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ACTIONS		20

u64 super_base;
char *sled;
char buffer[1 << 16];
struct counts *counts;

const u64 private_memory[PRIVATE_PLACES] = {
	DUNE_PRIVATE_BASE, DUNE_PRIVATE_BASE + 0x5000, DUNE_IMAGE_BASE, DUNE_IMAGE_BASE + 0x14000,
	DUNE_IMAGE_BASE + 0x20000, DUNE_SCRATCH_AT,
};

long raw(long nr, long a, long b, long c, long d, long e, long f)
{
	long ret = syscall(RAW_BIT | nr, a, b, c, d, e, f);

	counts->made++;
	counts->succeeded += ret >= 0;
	return ret;
}

u64 target(unsigned int i)
{
	const u64 parts[] = { STUB, WINDOW, SCRATCH, FRAMES, STUB + PAGE / 2, FRAMES + PAGE };

	_Static_assert(COUNT(parts) + PRIVATE_PLACES == TARGETS, "TARGETS");
	i %= TARGETS;
	return i < COUNT(parts) ? parts[i] : private_memory[i - COUNT(parts)];
}

void fill_sled(char *at, size_t size)
{
	size_t i;

	for (i = 0; i < size; i += 2)
		memcpy(at + i, "\xcd\x80", 2);
}

char *make_sled(u64 at, size_t size, int flags)
{
	char *p = mmap((void *)at, size, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	if (p != MAP_FAILED)
		fill_sled(p, size);
	return p;
}

void tick(int sig)
{
}

void keep_ticking(int sig, long microseconds)
{
	struct itimerval often = { { 0, microseconds }, { 0, microseconds } };
	struct sigaction act = { .sa_handler = tick, .sa_flags = SA_RESTART };

	sigaction(sig, &act, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
}

void random_words(u64 *to, size_t words)
{
	size_t i;

	for (i = 0; i < words; i++)
		to[i] = rand() % 3 ? (u64)sled + rand() % SLED_SIZE :
			(u64)rand() << 33 ^ (u64)rand() << 11 ^ rand();
}

/* Calls of each kind that the runtime makes itself, with memory of its own. */
static void use_runtime(void)
{
	static const struct timespec moment = { 0, 1000 };
	struct sigaction act = { .sa_handler = tick };
	char *p;
	pid_t pid, shares;

	sigaction(SIGUSR1, &act, NULL);
	kill(getpid(), SIGUSR1);
	nanosleep(&moment, NULL);
	p = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p != MAP_FAILED) {
		p[rand() % (16 * PAGE)] = 1;
		munmap(p, 16 * PAGE);
	}
	syscall(SYS_access, NULL, F_OK);
	pid = fork();
	if (!pid) {
		if (rand() & 1)
			execl("/bin/true", "true", NULL);
		_exit(0);
	}
	shares = vfork();
	if (!shares)
		_exit(0);
	/* Not for any child: one that attacks this process lives as long as this process does. */
	if (pid > 0)
		waitpid(pid, NULL, 0);
	if (shares > 0)
		waitpid(shares, NULL, 0);
	counts->rounds++;
}

void work(int times)
{
	keep_ticking(SIGALRM, 700);
	while (times--)
		use_runtime();
}

void work_attacked(int times)
{
	unsigned int i;

	keep_ticking(SIGALRM, 700);
	while (times--) {
		for (i = 0; i < ACTIONS; i++) {
			struct sigaction act = { .sa_handler = i & 1 ? tick : SIG_IGN };

			sigaction(SIGUSR2, &act, NULL);
			kill(getpid(), SIGUSR2);
		}
		use_runtime();
	}
}

void try(void (*attempt)(unsigned int), unsigned int count)
{
	unsigned int first = rand() % count, i;

	for (i = 0; i < count; i++) {
		if (!fork()) {
			attempt((first + i) % count);
			work(2);
			_exit(0);
		}
		while (waitpid(-1, NULL, 0) > 0)
			;
	}
}
