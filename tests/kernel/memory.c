// SPDX-License-Identifier: MIT OR Apache-2.0
/* Memory that is accessed in a guest, and changed under it: see memory.h. */
#define _GNU_SOURCE
#include "memory.h"
#include "machine.h"
#include "tap.h"

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

int access_by(struct guest *g, u64 (*fn)(void *arg), volatile void *p, u64 *value)
{
	struct sigaction sa = { .sa_handler = caught, .sa_flags = SA_NODEFER };
	int sig;

	sigaction(SIGSEGV, &sa, NULL);
	sigaction(SIGBUS, &sa, NULL);
	sig = sigsetjmp(env, 1);
	if (!sig) {
		if (guest_call(g, fn, (void *)p) != GUEST_DONE)
			sig = -1;
		else if (value)
			*value = g->value;
	}
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	return sig;
}

volatile u64 *area;
static volatile int stop, entered;
static volatile u64 expected;	/* what the guest must read from now on */
static volatile u64 stale, reads;

/*
 * The changer makes the page hold n + 1 and then sets @expected. A guest that reads
 * @expected first, the page after, must find at least it.
 */
static u64 reader(void *arg)
{
	entered = 1;
	while (!stop) {
		u64 least = __atomic_load_n(&expected, __ATOMIC_SEQ_CST);
		u64 value = __atomic_load_n(area, __ATOMIC_SEQ_CST);

		/* 0: between two mappings, where the case allows for that. */
		if (value && value < least)
			stale++;
		reads++;
	}
	return 0;
}

static void *changer(void *arg)
{
	void (*fn)(u64 n) = arg;
	long count = rounds();

	while (!entered)
		;
	for (long n = 2; n < 2 + count; n++) {
		fn(n);
		__atomic_store_n(&expected, n, __ATOMIC_SEQ_CST);
		for (volatile int i = 0; i < 3000; i++)
			;
	}
	stop = 1;
	return NULL;
}

void under_change(struct guest *g, const char *name, void (*fn)(u64 n))
{
	pthread_t t;

	stop = 0;
	entered = 0;
	stale = 0;
	reads = 0;
	expected = 1;
	area[0] = 1;
	pthread_create(&t, NULL, changer, fn);
	/*
	 * An emulator that flushes at each entry hides stale translations, so one
	 * DUNE_RUN is long: the guest leaves only for interrupts.
	 */
	enum guest_end end = guest_call(g, reader, NULL);

	stop = 1;
	pthread_join(t, NULL);
	ok(end == GUEST_DONE && !stale && reads, "%s: no stale data in %lu reads (%s, %lu stale)",
	   name, reads, guest_end_name(g, end), stale);
}
