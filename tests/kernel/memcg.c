// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A guest that faults while its memory cgroup is full leaves no state in the kernel.
 * In a cgroup of version 1 whose OOM killer is off, a page fault of user mode
 * waits at its end for memory, and holds a reference until then; a nested
 * fault has no such end. Fails when the reference is never dropped: the cgroup
 * stays after it was removed.
 */
#define _GNU_SOURCE
#include "cgroup.h"
#include "child.h"
#include "guest.h"
#include "klog.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LIMIT	(48UL << 20)
#define SIZE	(64UL << 20)
#define ROUNDS	8

static volatile char *memory;

static u64 fill(void *arg)
{
	for (u64 i = 0; i < SIZE; i += 4096)
		memory[i] = 1;
	return 0;
}

/*
 * Once the cgroup is full, this process must touch no new page before it has given
 * some back: a fault of its own would wait for ever.
 */
static void run_full(void *arg)
{
	struct guest g;

	cgroup_join();
	guest_open(&g);
	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	madvise((void *)memory, SIZE, MADV_NOHUGEPAGE);
	for (u64 i = 0; i < sizeof(*g.mem); i += 4096)
		((volatile char *)g.mem)[i] = ((volatile char *)g.mem)[i];
	guest_prepare(&g, 0, fill, NULL);

	int err;

	do
		err = guest_run(&g);
	while (!err && g.run->exit_reason == DUNE_EXIT_INTR);
	raw_syscall(SYS_madvise, (long)memory, SIZE, MADV_DONTNEED, 0, 0, 0);
	if (err)
		child_fails("DUNE_RUN failed: %s", strerror(-err));
	if (g.run->exit_reason != DUNE_EXIT_FAULT)
		child_fails("the run did not end in DUNE_EXIT_FAULT");
}

/* The number of memory cgroups, also of those that only references keep. */
static long groups(void)
{
	FILE *f = fopen("/proc/cgroups", "re");
	char line[200];
	long n = -1;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "memory %*d %ld", &n) == 1)
			break;
	if (f)
		fclose(f);
	return n;
}

static long groups_now(void)
{
	file_write("/proc/sys/vm/drop_caches", "3");
	sleep_ms(100);
	return groups();
}

/* Their number, once it is @wanted or has had time to become it. */
static long groups_settle(long wanted)
{
	WAIT_FOR(groups_now() <= wanted, 8);
	return groups();
}

int main(void)
{
	struct klog log;
	long before, after;
	int good = 0;

	begin(300);
	klog_begin(&log);
	if (cgroup_mount() != CGROUPS_1) {
		skip("this kernel has no memory cgroups of version 1", "faults in a full cgroup");
		cgroup_unmount();
		return done();
	}
	before = groups();
	ok(cgroup_make(LIMIT) && !cgroup_set_oom_killer(false),
	   "a cgroup without an OOM killer is made");
	for (int i = 0; i < ROUNDS; i++) {
		struct outcome end = in_child(run_full, NULL, 60);

		good += !end.code;
		if (end.code)
			diag("a process in the full cgroup: %s", outcome_text(end));
	}
	ok(good == ROUNDS, "guests that fill the cgroup get DUNE_EXIT_FAULT (%d of %d)", good,
	   ROUNDS);
	cgroup_empty();
	ok(cgroup_remove(), "the cgroup is removed");
	after = groups_settle(before);
	ok(after <= before, "the cgroup is gone after it was removed (%ld cgroups, %ld before)",
	   after, before);
	cgroup_unmount();
	klog_end(&log);
	return done();
}
