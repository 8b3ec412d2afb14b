// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * An arena that is too small. A page-table call that it is too small for changes
 * nothing and keeps no memory; an access for which there is no page left for a
 * page table ends the program with a line that gives the reason. Fails when a call
 * does half of its work, loses pages, or when the program dies without that line.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "rings.h"
#include "tap.h"
#include "x86.h"

#define ARENA	(1UL << 20)
#define WINDOW	0x200000000000UL

static char arena[ARENA] __attribute__((aligned(65536)));

static uint64_t size_of(uint64_t va)
{
	uint64_t size = 0;

	dune_pt_entry(dune_pt_root(), va, &size);
	return size;
}

static char *map(void *at)
{
	return mmap(at, PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* All pages of the arena but @left. */
static void use_up(int left)
{
	void *kept[8];
	int i;

	for (i = 0; i < left; i++)
		kept[i] = dune_page_alloc(1);
	while (dune_page_alloc(1))
		;
	for (i = 0; i < left; i++)
		dune_page_free(kept[i], 1);
}

static void same(const struct dune_stats *before, const char *what)
{
	struct dune_stats after;

	dune_stats(&after);
	ok(after.arena_bytes == before->arena_bytes &&
	   after.table_bytes == before->table_bytes, "%s: all memory is back", what);
}

static void test_too_much(void)
{
	dune_pte *root = dune_pt_root();
	struct dune_stats before;
	uint64_t size;

	size = size_of(WINDOW);
	dune_stats(&before);
	is(dune_pt_split(root, WINDOW, GB, PAGE), -ENOMEM,
	   "dune_pt_split() of 1 GB into pages: ENOMEM");
	same(&before, "split");
	is(size_of(WINDOW), size, "a split that failed has split nothing");
}

static uint64_t entry(uint64_t va)
{
	return *dune_pt_entry(dune_pt_root(), va, NULL) & ~(DUNE_PTE_A | DUNE_PTE_D);
}

/* Tables for the first of the two pages, but not for the second. */
static void test_half(void)
{
	dune_pte *root = dune_pt_root();
	uint64_t va = WINDOW + MB2 - PAGE, first, second;
	struct dune_stats before;

	first = size_of(va);
	second = size_of(va + PAGE);
	dune_stats(&before);
	is(dune_pt_protect(root, va, 2 * PAGE, DUNE_PT_RO), -ENOMEM,
	   "dune_pt_protect() without a page for a table: ENOMEM");
	same(&before, "protect");
	ok((entry(va) & DUNE_PTE_W) && (entry(va + PAGE) & DUNE_PTE_W) &&
	   size_of(va) == first && size_of(va + PAGE) == second,
	   "a dune_pt_protect() that failed has changed neither page");
	is(dune_pt_map(root, va, 2 * PAGE, GB, DUNE_PT_RW), -ENOMEM,
	   "dune_pt_map() without a page for a table: ENOMEM");
	same(&before, "map");
	ok(size_of(va) == first && size_of(va + PAGE) == second,
	   "a dune_pt_map() that failed has mapped neither page");
	is(dune_pt_unmap(root, va, 2 * PAGE), -ENOMEM,
	   "dune_pt_unmap() without a page for a table: ENOMEM");
	ok((entry(va) & DUNE_PTE_P) && (entry(va + PAGE) & DUNE_PTE_P),
	   "a dune_pt_unmap() that failed has left both pages");
	is(dune_pt_split(root, va, 2 * PAGE, PAGE), -ENOMEM,
	   "dune_pt_split() without a page for a table: ENOMEM");
	same(&before, "split");
	ok(!dune_pt_clone(root), "dune_pt_clone() without pages: NULL");
	same(&before, "clone");
	is(dune_pt_protect(root, WINDOW + MB2, MB2, DUNE_PT_RW), 0,
	   "calls that need no page for a table still work");
}

static void touch(void)
{
	*(volatile char *)(WINDOW / 2) = 1;
}

static void test_full(void)
{
	char text[512] = "";
	int status, out[2];
	pid_t pid;

	map((void *)(WINDOW / 2));
	if (pipe(out))
		bail("pipe: %m");
	pid = fork();
	if (!pid) {
		dup2(out[1], 2);
		use_up(0);
		touch();
		_exit(0);
	}
	close(out[1]);
	waitpid(pid, &status, 0);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS,
	   "an access without a page for its page table: SIGBUS (status 0x%x)", status);
	if (read(out[0], text, sizeof(text) - 1) < 0)
		bail("read: %m");
	ok(strstr(text, "the arena is full") && strstr(text, "0x100000000000"),
	   "the program prints that the arena is full, and the address: %.*s",
	   (int)strcspn(text, "\n"), text);
	pid = fork();
	if (!pid) {
		use_up(0);
		*(volatile char *)(WINDOW / 2 + GB) = 1;
		_exit(0);
	}
	waitpid(pid, &status, 0);
	ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV,
	   "an access to nothing with a full arena: SIGSEGV (status 0x%x)", status);
	touch();
	ok(1, "the parent, with pages left, continues");
}

int main(void)
{
	struct dune_config cfg = {
		.size = sizeof(cfg),
		.arena = arena,
		.arena_size = sizeof(arena),
	};
	int status;
	pid_t pid;

	must_enter(&cfg);
	test_full();
	fflush(stdout);
	pid = fork();
	if (!pid) {
		/* the table of 2 MB pages, and one of 4 KB pages */
		dune_pt_split(dune_pt_root(), WINDOW, PAGE, MB2);
		use_up(1);
		tap_where = "one page left: ";
		test_half();
		exit(tap_failed ? 100 : tap_count);
	}
	waitpid(pid, &status, 0);
	tap_count = WEXITSTATUS(status);
	ok(WIFEXITED(status) && WEXITSTATUS(status) < 100, "calls that fail half way");
	test_too_much();
	return done();
}
