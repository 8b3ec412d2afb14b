// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Resource limits hold for a guest: processor time, address space, files, file size,
 * stack, locked memory. Fails when time in the guest is not accounted to the process,
 * when a call or a page fault of the guest goes beyond a limit or fails below one, or
 * when the signal of a limit (SIGXCPU, SIGKILL, SIGXFSZ, SIGSEGV) does not come.
 */
#define _GNU_SOURCE
#include "child.h"
#include "guest.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static void limit(int what, unsigned long soft, unsigned long hard)
{
	struct rlimit r = { soft, hard };

	setrlimit(what, &r);
}

static u64 spin(void *arg)
{
	for (;;)
		asm volatile("pause");
	return 0;
}

static void cpu_soft(void *arg)
{
	struct guest g;

	guest_open(&g);
	limit(RLIMIT_CPU, 1, 60);
	guest_call(&g, spin, NULL);
}

static void cpu_hard(void *arg)
{
	struct guest g;

	guest_open(&g);
	signal(SIGXCPU, SIG_IGN);
	limit(RLIMIT_CPU, 1, 2);
	guest_call(&g, spin, NULL);
}

static u64 map(void *arg)
{
	return hypercall(SYS_mmap, 0, (long)arg, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void address_space(void *arg)
{
	struct guest g;

	guest_open(&g);
	limit(RLIMIT_AS, 64UL << 20, 64UL << 20);
	if (guest_call(&g, map, (void *)(1UL << 20)) != GUEST_DONE || (long)g.value < 0)
		child_fails("mmap() below the limit failed");
	if (guest_call(&g, map, (void *)(128UL << 20)) != GUEST_DONE || (long)g.value != -ENOMEM)
		child_fails("mmap() beyond the limit is not ENOMEM");
}

static u64 open_many(void *arg)
{
	for (int i = 0; i < 100; i++) {
		long fd = hypercall3(SYS_open, (long)"/dev/null", O_RDONLY, 0);

		if (fd < 0)
			return fd;
	}
	return 0;
}

static void files(void *arg)
{
	struct guest g;

	guest_open(&g);
	limit(RLIMIT_NOFILE, 20, 20);
	if (guest_call(&g, open_many, NULL) != GUEST_DONE || (long)g.value != -EMFILE)
		child_fails("open() beyond the limit is not EMFILE");
}

static u64 grow_file(void *arg)
{
	return hypercall(SYS_pwrite64, (long)arg, (long)"x", 1, 1 << 20, 0, 0);
}

static volatile int signalled;

static void on_signal(int sig)
{
	signalled = 1;
}

static void file_size(void *arg)
{
	int fd = memfd_create("x", 0);
	struct guest g;

	guest_open(&g);
	signal(SIGXFSZ, on_signal);
	limit(RLIMIT_FSIZE, 4096, 4096);
	if (guest_call(&g, grow_file, (void *)(long)fd) != GUEST_DONE || (long)g.value != -EFBIG)
		child_fails("a write beyond the limit is not EFBIG");
	if (!signalled)
		child_fails("a write beyond the limit raised no SIGXFSZ");
}

static u64 touch_down(void *arg)
{
	volatile char *p = (volatile char *)&arg;
	char *low = (char *)arg;

	for (p -= 4096; p > low; p -= 4096)
		*p = 1;
	return 1;
}

/* The process's own stack as the guest's: it grows, up to its limit. */
static void stack(void *arg)
{
	char here;
	struct guest g;

	limit(RLIMIT_STACK, 1 << 20, 1 << 20);
	guest_open(&g);
	guest_prepare(&g, 0, touch_down, &here - (long)arg);
	g.run->regs.rsp = ((u64)&here - 65536) & -16UL;
	if (guest_resume(&g) != GUEST_DONE || g.value != 1)
		child_fails("the guest did not return");
	if (!g.faults)
		child_fails("the stack did not grow by a fault of the guest");
}

static u64 lock(void *arg)
{
	return hypercall3(SYS_mlock, (long)arg, 1 << 20, 0);
}

static void locked(void *arg)
{
	void *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct guest g;

	guest_open(&g);
	limit(RLIMIT_MEMLOCK, 65536, 65536);
	if (setresuid(65534, 65534, 65534))
		child_fails("the process cannot become a user");
	if (guest_call(&g, lock, p) != GUEST_DONE || (long)g.value != -ENOMEM)
		child_fails("mlock() beyond the limit is not ENOMEM");
}

/* Time spent in the guest is accounted as the process's user or system time. */
static void accounted(void *arg)
{
	struct rusage r;
	struct guest g;

	guest_open(&g);
	if (!checked_fork()) {
		sleep_ms(1000);
		kill(getppid(), SIGUSR1);
		_exit(0);
	}
	signal(SIGUSR1, on_signal);
	guest_prepare(&g, 0, spin, NULL);
	while (!signalled) {
		int err = guest_run(&g);

		if (err && err != -EINTR)
			child_fails("DUNE_RUN failed");
	}
	getrusage(RUSAGE_SELF, &r);

	long ms = r.ru_utime.tv_sec * 1000 + r.ru_utime.tv_usec / 1000 +
		  r.ru_stime.tv_sec * 1000 + r.ru_stime.tv_usec / 1000;

	if (ms <= 300)
		child_fails("%ld ms are accounted of a second in the guest", ms);
}

/* A child that runs fn(arg) exits with 0, or @signal ends it. */
static const struct {
	void (*fn)(void *arg);
	long arg;
	int signal;
	const char *name;
} cases[] = {
	{ cpu_soft, 0, SIGXCPU,
	  "SIGXCPU ends a guest that spins beyond the soft limit of RLIMIT_CPU" },
	{ cpu_hard, 0, SIGKILL,
	  "SIGKILL ends a guest that spins beyond the hard limit of RLIMIT_CPU" },
	{ accounted, 0, 0, "time in the guest is accounted to the process" },
	{ address_space, 0, 0,
	  "an mmap() of the guest beyond RLIMIT_AS is ENOMEM, one below it succeeds" },
	{ files, 0, 0, "an open() of the guest beyond RLIMIT_NOFILE is EMFILE" },
	{ file_size, 0, 0, "a write of the guest beyond RLIMIT_FSIZE is EFBIG and raises SIGXFSZ" },
	{ stack, 512L << 10, 0, "the stack grows below its limit" },
	{ stack, 2L << 20, SIGSEGV,
	  "SIGSEGV ends a guest whose stack grows beyond RLIMIT_STACK" },
	{ locked, 0, 0, "an mlock() of the guest beyond RLIMIT_MEMLOCK is ENOMEM for a user" },
};

int main(void)
{
	begin(120);
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct outcome o = in_child(cases[i].fn, (void *)cases[i].arg, 30);

		ok(outcome_is(o, cases[i].signal), "%s (%s)", cases[i].name, outcome_text(o));
	}
	return done();
}
