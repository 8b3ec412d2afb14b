// SPDX-License-Identifier: MIT OR Apache-2.0
/* Memory that is accessed in a guest, and changed under it: see memory.h. */
#define _GNU_SOURCE
#include "memory.h"
#include "klog.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct klog log;

void memory_begin(struct guest *g, unsigned int seconds)
{
	begin(seconds);
	klog_begin(&log);
	guest_open(g);
}

int memory_end(void)
{
	klog_end(&log);
	return done();
}

long rounds(void)
{
	return env_number("MEMORY_ROUNDS", 150);
}

void *new_memory(unsigned long size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		bail("mmap: %s", strerror(errno));
	return p;
}

int new_file(unsigned long size)
{
	int file = memfd_create("memory", 0);

	if (file < 0 || ftruncate(file, size))
		bail("a file in memory: %s", strerror(errno));
	return file;
}

void *map_file(int file, unsigned long size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	if (p == MAP_FAILED)
		bail("mmap of a file: %s", strerror(errno));
	return p;
}

void *new_huge_page(void)
{
	u64 room = (u64)new_memory(2 * HUGE_SIZE);
	void *page = (void *)((room + HUGE_SIZE - 1) & -HUGE_SIZE);

	madvise(page, HUGE_SIZE, MADV_HUGEPAGE);
	return page;
}

u64 store(void *address)
{
	*(volatile u64 *)address = STORED;
	return 0;
}

static sigjmp_buf env;

static void caught(int sig)
{
	siglongjmp(env, sig);
}

/* guest_call(), and the signal that the process got instead of an end, or 0. */
static int call_caught(struct guest *g, u64 (*fn)(void *arg), void *arg, enum guest_end *end)
{
	struct sigaction sa = { .sa_handler = caught, .sa_flags = SA_NODEFER };
	int sig;

	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	sig = sigsetjmp(env, 1);
	if (!sig)
		*end = guest_call(g, fn, arg);
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	return sig;
}

int access_by(struct guest *g, u64 (*fn)(void *arg), volatile void *p, u64 *value)
{
	enum guest_end end;
	int sig = call_caught(g, fn, (void *)p, &end);

	if (sig)
		return sig;
	if (end != GUEST_DONE)
		return -1;
	if (value)
		*value = g->value;
	return 0;
}

volatile u64 *area;

/* One case: the change, and what the guest has read. */
static struct {
	void (*fn)(u64 n);
	long count;
	volatile int stop, entered;
	volatile u64 expected;	/* what the guest must read from now on */
	volatile u64 stale, reads;
} change;

/*
 * The changer makes the page hold n + 1 and then sets @expected. A guest that reads
 * @expected first, the page after, must find at least it.
 */
static u64 reader(void *arg)
{
	change.entered = 1;
	while (!change.stop) {
		u64 least = __atomic_load_n(&change.expected, __ATOMIC_SEQ_CST);
		u64 value = __atomic_load_n(area, __ATOMIC_SEQ_CST);

		/* 0: between two mappings, where the case allows for that. */
		if (value && value < least)
			change.stale++;
		change.reads++;
	}
	return 0;
}

static void *changer(void *arg)
{
	while (!change.entered)
		;
	for (long n = 2; n < 2 + change.count; n++) {
		change.fn(n);
		__atomic_store_n(&change.expected, n, __ATOMIC_SEQ_CST);
		for (volatile int i = 0; i < 3000; i++)
			;
	}
	change.stop = 1;
	return NULL;
}

static void read_under(struct guest *g, const char *name, bool unmaps)
{
	enum guest_end end = GUEST_DONE;
	pthread_t t;
	int sig;

	change.stop = 0;
	change.entered = 0;
	change.stale = 0;
	change.reads = 0;
	change.expected = 1;
	area[0] = 1;
	pthread_create(&t, NULL, changer, NULL);
	/*
	 * An emulator that flushes at each entry hides stale translations, so one
	 * DUNE_RUN is long: the guest leaves only for interrupts, and to be unmapped.
	 */
	do
		sig = call_caught(g, reader, NULL, &end);
	while (unmaps && sig == SIGSEGV && !change.stop);
	change.stop = 1;
	pthread_join(t, NULL);
	ok((sig ? unmaps && sig == SIGSEGV : end == GUEST_DONE) && !change.stale && change.reads,
	   "%s: no stale data in %lu reads (%s, %lu stale)", name, change.reads,
	   sig ? strsignal(sig) : guest_end_name(g, end), change.stale);
}

void under_change(struct guest *g, const char *name, void (*fn)(u64 n))
{
	change.fn = fn;
	change.count = rounds();
	read_under(g, name, false);
}

void under_unmapping(struct guest *g, const char *name, void (*fn)(u64 n), long count)
{
	change.fn = fn;
	change.count = count;
	read_under(g, name, true);
}
