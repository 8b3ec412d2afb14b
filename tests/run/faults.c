// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Page faults that a program expects: the same one again and again, with a handler that
 * makes progress, and faults while their signal is blocked. Prints what happened. faults.bash
 * fails when that differs between the native run and the one in the sandbox: a signal is
 * lost, delivered twice or has another cause.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TIMES	3000

static char *page;
static volatile long count;
static sigjmp_buf back;

static void make_writable(int sig, siginfo_t *info, void *uc)
{
	count++;
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static void jump_back(int sig, siginfo_t *info, void *uc)
{
	count++;
	siglongjmp(back, 1);
}

static void note(int sig, siginfo_t *info, void *uc)
{
	count++;
	printf("signal %d, code %d, value %d\n", sig, info->si_code, info->si_value.sival_int);
}

static void handle(void (*handler)(int, siginfo_t *, void *), int flags)
{
	struct sigaction act = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags };

	count = 0;
	sigaction(SIGSEGV, &act, NULL);
	sigaction(SIGBUS, &act, NULL);
}

static void write_barriers(void)
{
	handle(make_writable, 0);
	for (int i = 0; i < TIMES; i++) {
		mprotect(page, 4096, PROT_READ);
		*(volatile int *)page = i;
	}
	printf("write barriers: %ld faults, last value %d\n", count, *(int *)page);
}

static void null_checks(void)
{
	int *volatile null = NULL;
	volatile int i = 0;

	handle(jump_back, SA_NODEFER);
	for (; i < TIMES; i++)
		if (!sigsetjmp(back, 0))
			*(volatile int *)null = i;
	printf("null checks: %ld\n", count);
}

/* The runtime itself looks at names, so it meets the same fault. */
static void refused_copies(void)
{
	long efaults = 0;
	struct stat st;

	signal(SIGSEGV, SIG_DFL);
	mprotect(page, 4096, PROT_NONE);
	for (int i = 0; i < TIMES; i++)
		efaults += syscall(SYS_newfstatat, AT_FDCWD, page, &st, 0) < 0 && errno == EFAULT;
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
	printf("EFAULT %ld times\n", efaults);
}

/* A stack that grows, and is cut off again: the same instruction, the same address. */
static void cut_stack(void)
{
	char *mapping = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
	char *low = mapping + (4 << 20);
	long sum = 0;

	for (int i = 0; i < TIMES; i++) {
		munmap(mapping, 5 << 20);
		*(volatile char *)low = 1;
		sum += *low;
	}
	printf("stack cut off %ld times\n", sum);
}

static void pending(int sig)
{
	union sigval value = { .sival_int = 77 };
	struct stat st;
	sigset_t set, now;

	handle(note, 0);
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigqueue(getpid(), sig, value);
	mprotect(page, 4096, PROT_NONE);
	for (int i = 0; i < 3; i++) {
		long ret = syscall(SYS_newfstatat, AT_FDCWD, page, &st, 0);

		printf("%d blocked and pending, stat: %s\n", sig, ret < 0 ? strerror(errno) : "0");
	}
	mprotect(page, 4096, PROT_READ | PROT_WRITE);
	sigpending(&now);
	printf("still pending: %d, handled %ld\n", sigismember(&now, sig), count);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	printf("after unblocking: %ld\n", count);
	/* the same without a handler */
	signal(sig, SIG_DFL);
	sigprocmask(SIG_BLOCK, &set, NULL);
	raise(sig);
	syscall(SYS_newfstatat, AT_FDCWD, (char *)NULL, &st, 0);
	signal(sig, SIG_IGN);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	printf("%d with its default action: lived\n", sig);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	write_barriers();
	null_checks();
	refused_copies();
	cut_stack();
	pending(SIGSEGV);
	pending(SIGBUS);
	return 0;
}
