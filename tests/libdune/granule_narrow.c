// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Guest-physical addresses with a pretended processor of few address bits, in a process that
 * never enters: what the page-table calls write. Fails when an entry leads to other memory than
 * the one named or is of another size, when a copy shares entries with its original, or when
 * a call succeeds that needs a granule and there is none left.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <dune.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "internals.h"
#include "tap.h"
#include "x86.h"

/* Unused addresses: a gigabyte whose addresses map to themselves. */
#define FAR	0x100000000000UL

#define SMALL	8

/* The walk that the processor makes, with our own record of granules. */
static uint64_t walk(uint64_t cr3, uint64_t va, int *level)
{
	uint64_t e = cr3, size;

	for (*level = 3; ; --*level) {
		uint64_t table = dune_va(e & DUNE_PTE_ADDR);

		if (table == ~0UL)
			return ~0UL;
		e = ((uint64_t *)table)[va >> (12 + 9 * *level) & 511];
		if (!(e & DUNE_PTE_P))
			return ~0UL;
		if (!*level || (e & DUNE_PTE_PS))
			break;
	}
	size = PAGE << (9 * *level);
	return (e & DUNE_PTE_ADDR & ~(size - 1)) + (va & (size - 1));
}

static int leads(dune_pte *root, uint64_t va, uint64_t to, int want_level)
{
	int level;
	uint64_t gpa = walk(dune_gpa((uint64_t)root), va, &level);

	return gpa != ~0UL && gpa < SMALL * GB && gpa >= GB && dune_va(gpa) == to &&
	       level == want_level;
}

static int count(dune_pte *e, uint64_t va, uint64_t size, void *arg)
{
	if (dune_va(*e & DUNE_PTE_ADDR & ~(size - 1)) == va)
		++*(int *)arg;
	return 0;
}

/* A root, which maps a large page at FAR. @used: how many granules that takes. */
static dune_pte *test_root(int have_1g, int *used)
{
	dune_pte *root = dune_pt_new();

	ok(root && dune_gpa((uint64_t)root) != (uint64_t)root,
	   "a root has a guest-physical address of its own");
	ok(dune_gpa((uint64_t)root) >= GB, "the first granule is not used for the root");
	is(dune_va(dune_gpa((uint64_t)root)), (uint64_t)root,
	   "dune_va() is the inverse of dune_gpa()");
	dune_pt_touch_core(root);
	dune_pt_touch(root, (const void *)(FAR + 12345), 1);
	*used = dune_gpa(FAR) / GB;
	ok(*used >= 2 && *used <= 4, "granules of the library itself: %d", *used - 1);
	ok(leads(root, FAR + 12345, FAR + 12345, 1 + have_1g),
	   "a new table maps addresses to themselves, in large pages");
	return root;
}

/* One page of a large one is split off, mapped, unmapped and brought back. */
static void test_pages(dune_pte *root)
{
	int level, n = 0;

	is(dune_pt_split(root, FAR + MB2, PAGE, PAGE), 0, "dune_pt_split() of a large page");
	ok(leads(root, FAR + MB2 + 1, FAR + MB2 + 1, 0),
	   "a page that was split maps to itself, in 4 KB");
	ok(leads(root, FAR + 2 * MB2 + 7, FAR + 2 * MB2 + 7, 1),
	   "the neighbour of a page that was split maps to itself, in 2 MB");
	is(dune_pt_map(root, FAR + MB2, PAGE, (uint64_t)root, DUNE_PT_RW), 0,
	   "dune_pt_map() of a page to other memory");
	ok(leads(root, FAR + MB2 + 8, (uint64_t)root + 8, 0),
	   "a page that was mapped leads to the memory that was named");
	is(dune_pt_unmap(root, FAR + 2 * MB2, PAGE), 0, "dune_pt_unmap() of a page");
	is(walk(dune_gpa((uint64_t)root), FAR + 2 * MB2, &level), -1,
	   "a page that was unmapped leads nowhere");
	is(dune_pt_protect(root, FAR + 2 * MB2, PAGE, DUNE_PT_RO), 0,
	   "dune_pt_protect() of a page that was unmapped");
	ok(leads(root, FAR + 2 * MB2 + 9, FAR + 2 * MB2 + 9, 0),
	   "dune_pt_protect() brings an unmapped page back");
	is(dune_pt_walk(root, FAR, GB, count, &n), 0, "dune_pt_walk() over a gigabyte");
	is(n, 510 + 512 + 511, "a walk finds that all entries but one lead to themselves");
}

/* After test_pages(). */
static void test_clone(dune_pte *root)
{
	struct dune_stats before, after;
	dune_pte *copy;

	dune_stats(&before);
	copy = dune_pt_clone(root);
	ok(copy && leads(copy, FAR + MB2 + 8, (uint64_t)root + 8, 0),
	   "dune_pt_clone() copies an entry");
	is(dune_pt_map(copy, FAR + MB2, PAGE, FAR, DUNE_PT_RW), 0,
	   "dune_pt_map() changes the copy");
	ok(leads(copy, FAR + MB2 + 8, FAR + 8, 0) &&
	   leads(root, FAR + MB2 + 8, (uint64_t)root + 8, 0),
	   "a change of the copy does not change the first table");
	is(dune_pt_free(copy), 0, "dune_pt_free() of the copy");
	dune_stats(&after);
	is(after.table_bytes, before.table_bytes,
	   "dune_pt_free() gives all of the copy's tables back");
}

static void test_large_pages(dune_pte *root)
{
	is(dune_pt_map(root, FAR + 8 * MB2, 4 * MB2, FAR + 16 * MB2, DUNE_PT_RW), 0,
	   "dune_pt_map() of large pages");
	ok(leads(root, FAR + 9 * MB2 + 3, FAR + 17 * MB2 + 3, 1), "large pages are mapped in 2 MB");
	is(dune_pt_map(root, FAR, GB, FAR, DUNE_PT_RW), 0,
	   "dune_pt_map() of a gigabyte, in the pages that it has");
	ok(leads(root, FAR + 9 * MB2 + 3, FAR + 9 * MB2 + 3, 1),
	   "dune_pt_map() of a gigabyte to itself restores its pages");
}

/* All granules but the first @used are taken, and then there is none left. */
static void test_used_up(dune_pte *root, int used)
{
	uint64_t at = FAR;
	int i;

	for (i = used; i < SMALL - 1; i++) {
		at += GB;
		if (dune_pt_unmap(root, at, PAGE))
			break;
	}
	is(i, SMALL - 1, "seven granules for seven gigabytes");
	is(dune_pt_map(root, FAR, PAGE, at + 5 * GB, DUNE_PT_RW), -ENOMEM,
	   "without a granule left, dune_pt_map() to new memory: ENOMEM");
	is(dune_pt_map(root, at + 5 * GB, PAGE, at, DUNE_PT_RW), -ENOMEM,
	   "without a granule left, dune_pt_map() at a new place: ENOMEM");
	is(dune_pt_split(root, at + 5 * GB, PAGE, PAGE), -ENOMEM,
	   "without a granule left, dune_pt_split(): ENOMEM");
	is(dune_gpa(at + 5 * GB), -1, "without a granule left, dune_gpa() fails");
	ok(!dune_pt_entry(root, at + 5 * GB, NULL),
	   "without a granule left, dune_pt_entry() is NULL");
	is(dune_pt_map(root, FAR, PAGE, at, DUNE_PT_RW), 0,
	   "without a granule left, dune_pt_map() to memory with a granule succeeds");
	is(dune_granule_tell(-1, 0), -ENOENT, "an address in the first granule: ENOENT");
	is(dune_granule_tell(-1, SMALL * GB), -ENOENT,
	   "an address in the granule after the last: ENOENT");
	is(dune_granule_tell(-1, (SMALL - 1) * GB), -EBADF,
	   "the last granule is one to tell a vCPU of: EBADF of vCPU -1");
}

static void test_tables(int have_1g)
{
	dune_pte *root;
	int used;

	dune_granule_init(SMALL);
	dune_pt_init(have_1g);
	root = test_root(have_1g, &used);
	test_pages(root);
	test_clone(root);
	test_large_pages(root);
	test_used_up(root, used);
}

/* Granules are never taken back, so each in a process of its own. */
static void test_pretended(int have_1g)
{
	static const struct dune_config cfg = { .size = sizeof(cfg) };
	int *counts = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		tap_where = have_1g ? "pretended, pages of 1 GB: " : "pretended, none of 1 GB: ";
		dune_page_init(&cfg);
		syscall(SYS_arch_prctl, ARCH_SET_GS, dune_thread_new());
		test_tables(have_1g);
		counts[0] = tap_count;
		counts[1] = tap_failed;
		_exit(0);
	}
	waitpid(child, &status, 0);
	tap_count = counts[0];
	tap_failed = counts[1];
	is(status, 0, "the child with a pretended processor ends normally");
}

int main(void)
{
	test_pretended(1);
	test_pretended(0);
	return done();
}
