// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Pages that the kernel moves (compaction), merges (KSM) or writes to swap. Fails when
 * the guest still uses a page that the kernel took, or writes to one that is shared.
 */
#define _GNU_SOURCE
#include "memory.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct guest g;

/* Compaction unmaps a page, moves it and maps it again. */
static void by_compaction(u64 n)
{
	area[0] = n;
	if (n % 30 == 0)
		file_write("/proc/sys/vm/compact_memory", "1");
}

#define KSM	"/sys/kernel/mm/ksm/"

static void merged(void)
{
	u64 *p = new_memory(16 * 4096), v;

	if (access(KSM "run", W_OK)) {
		skip("no KSM", "pages that KSM merges");
		return;
	}
	for (int i = 0; i < 16; i++)
		p[i * 512] = 0x1234;
	access_by(&g, guest_load, p, NULL);
	madvise(p, 16 * 4096, MADV_MERGEABLE);
	file_write(KSM "sleep_millisecs", "1");
	file_write(KSM "pages_to_scan", "2000");
	file_write(KSM "run", "1");
	for (int i = 0; i < 2000 && file_number(KSM "pages_sharing") < 15; i++)
		sleep_ms(1);
	diag("KSM shares %ld pages", file_number(KSM "pages_sharing"));
	ok(access_by(&g, store, p + 512, NULL) == 0 && p[512] == STORED && p[0] == 0x1234 &&
	   p[1024] == 0x1234,
	   "KSM: a guest's write parts one page from the shared one");
	ok(access_by(&g, guest_load, p + 1024, &v) == 0 && v == 0x1234,
	   "KSM: the guest reads the pages that are still shared");
	file_write(KSM "run", "0");
}

#define ZRAM	"/sys/block/zram0/"
#define SWAP	"/dev/dune-test-swap"

/* A compressed disk in memory as swap space; needs util-linux's swapon. */
static bool swap_on(void)
{
	return !system("modprobe -q zram num_devices=1 2>/dev/null") &&
	       !file_write(ZRAM "disksize", "16M") &&
	       !system("mknod -m 600 " SWAP " b $(tr : ' ' <" ZRAM "dev) && "
		       "mkswap -q " SWAP " >/dev/null && swapon " SWAP);
}

static void swap_off(void)
{
	(void)!system("swapoff " SWAP " && rm " SWAP " && echo 1 >" ZRAM "reset && rmmod zram");
}

static long swapped_out(void)
{
	char text[8192] = "", *line;

	file_read("/proc/vmstat", text, sizeof(text));
	line = strstr(text, "pswpout ");
	return line ? atol(line + 8) : 0;
}

/*
 * A guest that reads all the time, on another CPU, gets the page again before it is
 * written out: the page is only unmapped and mapped.
 */
static void by_swap_advice(u64 n)
{
	area[0] = n;
	madvise((void *)area, 4096, MADV_PAGEOUT);
}

static void swapped(void)
{
	bool swap = swap_on(), same = true;
	u64 *p = new_memory(16 * 4096), v;

	under_change(&g, "MADV_PAGEOUT", by_swap_advice);
	if (!swap) {
		skip("no zram or no swapon", "pages that are swapped out");
		return;
	}
	access_by(&g, store, p, NULL);
	for (u64 i = 1; i < 16; i++)
		p[i * 512] = i;
	access_by(&g, guest_load, p + 512, NULL);

	/*
	 * A page that was used lately stays. This advice clears the process's
	 * accessed bits, not those of EPT; reclaim finds those and clears them, and
	 * the page is kept until the next round. On a processor without these bits
	 * each mapped page counts as used, once. Compaction empties the CPUs' lists
	 * of pages on their way to the LRU, which would stay as well.
	 */
	long out = -swapped_out();
	int tries = 0;

	while (out + swapped_out() < 16 && tries < 8) {
		file_write("/proc/sys/vm/compact_memory", "1");
		madvise(p, 16 * 4096, MADV_PAGEOUT);
		tries++;
	}
	out += swapped_out();
	ok(out >= 16, "pages are swapped out (%ld, in %d rounds)", out, tries);
	for (u64 i = 0; i < 16; i++)
		same &= access_by(&g, guest_load, p + i * 512, &v) == 0 &&
			v == (i ? i : STORED);
	ok(same, "the guest reads the pages that were swapped out");
	munmap(p, 16 * 4096);
	swap_off();
}

int main(void)
{
	memory_begin(&g, 120);
	merged();
	area = new_memory(4096);
	under_change(&g, "compaction", by_compaction);
	swapped();
	return memory_end();
}
