// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Transparent huge pages: a huge page that mprotect splits, of which the kernel drops
 * a part, and which it collapses again, also while the guest reads. Fails when the
 * guest still has the huge translation after a part of the page changed.
 */
#define _GNU_SOURCE
#include "memory.h"
#include "proc.h"
#include "tap.h"

#include <errno.h>
#include <linux/mman.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

static struct guest g;
static u8 *page;

static u64 sum(void *arg)
{
	volatile u64 *p = arg;
	u64 s = 0;

	for (int i = 0; i < 512; i++)
		s += p[i * 512];
	return s;
}

static void split_and_collapsed(void)
{
	u64 *p = new_huge_page(), v;

	for (int i = 0; i < 512; i++)
		p[i * 512] = i;
	long huge_kb = file_key("/proc/self/smaps_rollup", "AnonHugePages");

	if (huge_kb <= 0)
		diag("no huge page was given");
	ok(access_by(&g, sum, p, &v) == 0 && v == 511 * 512 / 2, "a huge page (%ld KB) is read",
	   huge_kb);
	mprotect(p + 512 * 5, 4096, PROT_READ);
	ok(access_by(&g, sum, p, &v) == 0 && v == 511 * 512 / 2,
	   "a huge page that mprotect split reads the same");
	ok(access_by(&g, store, p + 512 * 5, NULL) == SIGSEGV,
	   "the page of a huge page that mprotect made read-only cannot be written");
	ok(access_by(&g, store, p + 512 * 6, NULL) == 0 && p[512 * 6] == STORED,
	   "the neighbour of that page in the huge page can be written");
	p[512 * 6] = 6;
	madvise(p + 512 * 7, 4096, MADV_DONTNEED);
	ok(access_by(&g, sum, p, &v) == 0 && v == 511 * 512 / 2 - 7,
	   "a huge page of which one page was dropped reads as zero there alone");
	p[512 * 7] = 7;
	mprotect(p, HUGE_SIZE, PROT_READ | PROT_WRITE);
	int err = madvise(p, HUGE_SIZE, MADV_COLLAPSE) ? errno : 0;

	ok(access_by(&g, sum, p, &v) == 0 && v == 511 * 512 / 2,
	   "a huge page that was collapsed again (%s) reads the same",
	   err ? strerror(err) : "done");
}

static void by_collapse(u64 n)
{
	area[0] = n;
	if (n % 8 == 0)
		madvise(page, HUGE_SIZE, MADV_COLLAPSE);
	if (n % 8 == 4) {
		mprotect(page + 4096, 4096, PROT_READ);
		mprotect(page + 4096, 4096, PROT_READ | PROT_WRITE);
	}
}

int main(void)
{
	memory_begin(&g, 60);
	split_and_collapsed();
	page = new_huge_page();
	memset(page, 0, HUGE_SIZE);
	area = (u64 *)(page + 64 * 4096);
	under_change(&g, "huge page split and collapsed", by_collapse);
	return memory_end();
}
