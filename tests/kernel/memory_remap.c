// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A page that is replaced by another one, dropped or taken away while the guest uses
 * it. Fails when the guest's translation outlives the kernel's: when the guest reads
 * the old page, or writes to a page after the call that took it away has returned.
 */
#define _GNU_SOURCE
#include "child.h"
#include "memory.h"
#include "tap.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct guest g;

/* A page elsewhere takes the place of the area's. */
static void by_mremap(u64 n)
{
	u64 *p = new_memory(4096);

	*p = n;
	if (mremap(p, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)area) != area)
		bail("mremap: %s", strerror(errno));
}

static void by_mmap(u64 n)
{
	if (mmap((void *)area, 4096, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_POPULATE, -1, 0) != area)
		bail("mmap: %s", strerror(errno));
	area[0] = n;
}

/* The kernel drops the page; the next is zero, then gets the number. */
static void by_dontneed(u64 n)
{
	madvise((void *)area, 4096, MADV_DONTNEED);
	area[0] = n;
}

/* ---- writes of the guest after its page was taken away ---- */

static volatile int stop, entered;

static u64 writer(void *arg)
{
	u64 n = 0;

	entered = 1;
	while (!stop)
		__atomic_store_n(&area[8], ++n, __ATOMIC_SEQ_CST);
	return n;
}

static int file;
static u64 *alias;
static bool replaces;
static long lost;

static void *take_away(void *arg)
{
	long count = rounds();

	while (!entered)
		;
	for (long n = 0; n < count; n++) {
		if (replaces)
			mmap((void *)area, 4096, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		else
			mprotect((void *)area, 4096, PROT_NONE);
		u64 then = __atomic_load_n(&alias[8], __ATOMIC_SEQ_CST);

		for (volatile int k = 0; k < 5000; k++)
			;
		lost += __atomic_load_n(&alias[8], __ATOMIC_SEQ_CST) != then;
		mmap((void *)area, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
		for (volatile int k = 0; k < 2000; k++)
			;
	}
	stop = 1;
	return NULL;
}

static void write_on(void *arg)
{
	struct guest own;
	pthread_t t;

	replaces = arg;
	area = map_file(file, 4096);
	guest_open(&own);
	pthread_create(&t, NULL, take_away, NULL);
	guest_prepare(&own, 0, writer, NULL);
	while (!stop) {
		int err = guest_run(&own);

		/*
		 * A host half that accessed a PROT_NONE page would get SIGSEGV: run
		 * again instead.
		 */
		if (err == -EINTR || (!err && (own.run->exit_reason == DUNE_EXIT_INTR ||
					       own.run->exit_reason == DUNE_EXIT_FAULT)))
			continue;
		if (stop)
			break;
		child_fails("the guest ended early: error %d, exit %u", err, own.run->exit_reason);
	}
	pthread_join(t, NULL);
	_exit(lost ? 1 : 0);
}

/*
 * Once mprotect() or mmap() has returned, no write of the guest may reach the page
 * that was taken away, which another mapping still shows.
 */
static void writes_after_unmap(void)
{
	file = new_file(4096);
	alias = map_file(file, 4096);
	for (long i = 0; i < 2; i++) {
		struct outcome o = in_child(write_on, (void *)i, 60);

		ok(o.code == 0, "%s: no write reaches a page taken away (%s)",
		   i ? "mmap over it" : "mprotect", outcome_text(o));
	}
}

int main(void)
{
	memory_begin(&g, 200);
	area = new_memory(4096);
	under_change(&g, "mremap over the page", by_mremap);
	under_change(&g, "mmap over the page", by_mmap);
	under_change(&g, "MADV_DONTNEED", by_dontneed);
	writes_after_unmap();
	return memory_end();
}
