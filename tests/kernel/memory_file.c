// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The guest's view of a mapped file: pages that the file loses and regains, other
 * pages of it in their place, and writes past the mapping. Fails when the guest reads
 * a page that the file no longer has there, or data from before a write.
 */
#define _GNU_SOURCE
#include "memory.h"
#include "tap.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGES	64UL

static struct guest g;
static int file;

static void resize(int fd, long size)
{
	if (ftruncate(fd, size))
		bail("ftruncate: %s", strerror(errno));
}

static void truncated(void)
{
	int fd = new_file(8192);
	u64 *p = map_file(fd, 8192), v;

	p[512] = 9;
	ok(access_by(&g, guest_load, p + 512, &v) == 0 && v == 9,
	   "the guest reads a page of a file");
	resize(fd, 4096);
	ok(access_by(&g, guest_load, p + 512, NULL) == SIGBUS,
	   "a read of a page that was cut off a file is SIGBUS");
	resize(fd, 8192);
	ok(access_by(&g, guest_load, p + 512, &v) == 0 && v == 0,
	   "a page that a file regained reads as zero");
	munmap(p, 8192);
	close(fd);
}

static void by_mmap(u64 n)
{
	off_t offset = n % PAGES * 4096;

	if (pwrite(file, &n, 8, offset) != 8 ||
	    mmap((void *)area, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
		 offset) != area)
		bail("mmap of a file: %s", strerror(errno));
}

/* A write through the file, not through the mapping. */
static void by_pwrite(u64 n)
{
	if (pwrite(file, &n, 8, 0) != 8)
		bail("pwrite: %m");
}

int main(void)
{
	memory_begin(&g, 60);
	truncated();
	file = new_file(PAGES * 4096);
	area = new_memory(4096);
	under_change(&g, "mmap of other pages of a file", by_mmap);
	area = map_file(file, 4096);
	under_change(&g, "write() to a mapped file", by_pwrite);
	return memory_end();
}
