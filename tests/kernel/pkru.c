// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * PKRU, which also restricts the kernel's accesses to user memory: a guest that
 * loads it by XRSTOR, which CR4.PKE does not forbid, changes nothing outside.
 * Fails when the module leaves the guest's value in force after an exit, or
 * undoes what pkey_alloc() or mprotect() of execute-only memory has set.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "tap.h"
#include "timing.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define XFEATURE_PKRU	9
#define DENY_ALL	0x55555555U	/* AD of all keys */
#define DENY_WRITES	0xaaaaaaaaU	/* WD of all keys */

static u8 area[8192] __attribute__((aligned(64)));
static unsigned int offset;	/* of PKRU in it */
static struct timespec now;
static u8 *keyed;

static void load_pkru(u32 value)
{
	u64 *features = (u64 *)(area + 512);

	memset(features, 0, 64);
	*features = 1UL << XFEATURE_PKRU;
	memcpy(area + offset, &value, sizeof(value));
	asm volatile("xrstor64 (%0)" : : "r"(area), "a"(1U << XFEATURE_PKRU), "d"(0) : "memory");
}

static u32 rdpkru(void)
{
	u32 value, high;

	asm volatile(".byte 0x0f, 0x01, 0xee" : "=a"(value), "=d"(high) : "c"(0));
	return value;
}

static void wrpkru(u32 value)
{
	asm volatile(".byte 0x0f, 0x01, 0xef" : : "a"(value), "c"(0), "d"(0) : "memory");
}

/* In the guest: the result of a call that writes to the process's memory. */
static u64 call_with(void *pkru)
{
	load_pkru((u64)pkru);
	return hypercall3(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now, 0);
}

/* In the guest: a key for a page, and a call that writes there. */
static u64 allocate(void *key)
{
	*(long *)key = hypercall3(SYS_pkey_alloc, 0, 0, 0);
	if (hypercall(SYS_pkey_mprotect, (long)keyed, 4096, PROT_READ | PROT_WRITE, *(long *)key,
		      0, 0))
		return 1;
	return hypercall3(SYS_clock_gettime, CLOCK_MONOTONIC, (long)keyed, 0);
}

/* In the guest: a page that may only be executed is no source for write(). */
static u64 read_execute_only(void *pipe)
{
	if (hypercall3(SYS_mprotect, (long)keyed, 4096, PROT_EXEC))
		return 1;
	return hypercall3(SYS_write, (long)pipe, (long)keyed, 16);
}

static void try(struct guest *g, u32 pkru, bool slow, const char *what)
{
	u32 before = rdpkru();
	bool finished;

	g->run->flags = slow ? DUNE_RUN_SLOW_SYSCALL : 0;
	finished = guest_call(g, call_with, (void *)(u64)pkru) == GUEST_DONE;
	ok(finished && !g->value, "%s, %s", what, slow ? "slow" : "fast");
	ok(rdpkru() == before, "the thread's PKRU is unchanged after: %s, %s", what,
	   slow ? "slow" : "fast");
}

int main(void)
{
	unsigned int a, b, c, d;
	struct guest g;
	long key = -1;
	bool finished;
	int fds[2];
	u32 before;

	begin(60);
	if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(c & 1 << 4)) {
		skip("this processor has no protection keys, or the kernel does not use them",
		     "PKRU in the guest");
		return done();
	}
	__cpuid_count(13, XFEATURE_PKRU, a, offset, c, d);
	guest_open(&g);
	for (int slow = 0; slow < 2; slow++) {
		try(&g, DENY_ALL, slow, "a call works although the guest denies all access");
		try(&g, DENY_WRITES, slow, "a call works although the guest denies writes");
	}
	g.run->flags = 0;
	keyed = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	guest_cover(&g, (u64)keyed);
	finished = guest_call(&g, allocate, &key) == GUEST_DONE;
	ok(finished && key > 0 && !g.value, "a guest's pkey_alloc() holds for the calls after it");
	ok(key > 0 && !(rdpkru() >> 2 * key & 3),
	   "what a guest's pkey_alloc() set holds after the run");
	/* Linux denies all keys but 0 at first; a program may have allowed them. */
	before = rdpkru();
	wrpkru(0);
	if (pipe2(fds, O_NONBLOCK))
		bail("pipe2: %s", strerror(errno));
	finished = guest_call(&g, read_execute_only, (void *)(long)fds[1]) == GUEST_DONE;
	wrpkru(before);
	ok(finished && g.value == (u64)-EFAULT,
	   "memory that a guest makes execute-only is not read (%ld)", (long)g.value);
	guest_close(&g);
	return done();
}
