// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Guest-physical addresses: what a program sees of them, what happens when they
 * are used up or wrong, and, with a pretended processor of few address bits, what
 * the page-table calls write. Fails when an entry leads to other memory than the
 * one named, when a child loses a granule of its parent's, or when a program whose
 * granules are used up ends without a message.
 */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <dune.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/dune.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tap.h"

#define PAGE	4096UL
#define MB2	(512 * PAGE)
#define GB	(512 * MB2)

/* Where nothing is: a place for one page in each gigabyte from here on. */
#define FAR	0x100000000000UL

static uint32_t granules;	/* dune_info.granules */

static void get_granules(void)
{
	struct dune_info info = { .size = sizeof(info) };
	int dev = open("/dev/dune", O_RDWR);

	if (dev < 0 || ioctl(dev, DUNE_GET_INFO, &info))
		bail("/dev/dune: %s", strerror(errno));
	close(dev);
	granules = info.granules;
}

/* ---- children, each of which enters ---- */

struct end {
	int code, signal;	/* as of waitpid(); -1 */
	char words[512];	/* its messages on stderr */
};

static struct end run(void (*fn)(void))
{
	struct end end = { -1, -1, "" };
	int channel[2], status;
	ssize_t n, got = 0;
	pid_t child;

	if (pipe(channel))
		exit(98);
	fflush(stdout);
	child = fork();
	if (!child) {
		dup2(channel[1], 2);
		if (dune_enter(NULL))
			_exit(97);
		fn();
		_exit(0);
	}
	close(channel[1]);
	while ((n = read(channel[0], end.words + got, sizeof(end.words) - 1 - got)) > 0)
		got += n;
	close(channel[0]);
	waitpid(child, &status, 0);
	if (WIFEXITED(status))
		end.code = WEXITSTATUS(status);
	else
		end.signal = WTERMSIG(status);
	return end;
}

static volatile char *page_at(uint64_t at)
{
	void *p = mmap((void *)at, PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	if (p == MAP_FAILED)
		_exit(96);
	return p;
}

static void touch(unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		*page_at(FAR + i * GB) = i;
	for (i = 0; i < count; i++) {
		if (*(volatile char *)(FAR + i * GB) != (char)i)
			_exit(1);
	}
}

static void touch_50(void)
{
	touch(50);
}

static void touch_all(void)
{
	touch(granules ? granules : 100);
}

/* As many windows as there are granules. */
static unsigned int use_up(void)
{
	unsigned int i, count = granules ? granules : 100;
	static char memory[2 * PAGE];
	uint64_t here = ((uint64_t)memory + PAGE - 1) & -PAGE;

	for (i = 0; i < count; i++) {
		int err = dune_pt_map(dune_pt_root(), FAR + i * GB, PAGE, here,
				      DUNE_PT_RW);

		if (err == -ENOMEM)
			break;
		if (err)
			_exit(2);
	}
	return i;
}

static void map_all(void)
{
	unsigned int i = use_up();
	pid_t child;
	int status;

	if (granules && (i >= granules || i < granules - 20))
		_exit(1);
	if (!granules && i != 100)
		_exit(3);
	/* Memory that was mapped already stays usable. */
	child = fork();
	if (!child)
		_exit(i & 63);
	if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != (int)(i & 63))
		_exit(4);
	if (dune_pt_map(dune_pt_root(), FAR, 2 * PAGE, (uint64_t)page_at(FAR + 8 * PAGE),
			DUNE_PT_RW) && !granules)
		_exit(5);
}

static void touch_nothing_at_last(void)
{
	use_up();
	*(volatile char *)(FAR + 0x40000 * GB / 8) = 1;
}

static void copy_nothing_at_last(void)
{
	use_up();
	_exit(write(1, (void *)(FAR + 0x40000 * GB / 8), 1) == -1 && errno == EFAULT &&
	      dune_copy((void *)(FAR + 0x40000 * GB / 8), &granules, 1) == -EFAULT ? 0 : 1);
}

/* An entry that leads to no memory of the process. */
static void wrong_entry(void)
{
	uint64_t wrong = granules ? (granules - 1) * GB : 1UL << 47;
	dune_pte *e;

	dune_pt_map(dune_pt_root(), FAR, PAGE, (uint64_t)page_at(FAR + PAGE),
		    DUNE_PT_RW);
	e = dune_pt_entry(dune_pt_root(), FAR, NULL);
	*e = wrong | DUNE_PTE_P | DUNE_PTE_W;
	dune_tlb_all();
	*(volatile char *)FAR = 1;
}

static void translate(void)
{
	uint64_t size, va = (uint64_t)page_at(FAR + 3 * PAGE);
	dune_pte *e;

	if (dune_va(dune_gpa(va + 5)) != va + 5 ||
	    dune_gpa(1UL << 60) != ~0UL * !!granules + (1UL << 60) * !granules)
		_exit(1);
	if (granules && (dune_gpa(va) == va || dune_va(4096) != ~0UL))
		_exit(2);
	if (dune_pt_split(dune_pt_root(), va, PAGE, PAGE))
		_exit(3);
	e = dune_pt_entry(dune_pt_root(), va, &size);
	if (size != PAGE || dune_va(*e & DUNE_PTE_ADDR) != va)
		_exit(4);
}

static void children(void)
{
	char *const argv[] = { "/bin/true", NULL };
	volatile char *p[8];
	pid_t child;
	int i, status;

	for (i = 0; i < 8; i++) {
		p[i] = page_at(FAR + i * GB);
		*p[i] = i + 1;
	}
	child = fork();
	if (!child) {
		for (i = 0; i < 8; i++) {
			if ((*p[i])++ != i + 1)
				_exit(1);
		}
		/* and a gigabyte that its parent does not have */
		*page_at(FAR + 9 * GB) = 9;
		child = fork();
		if (!child)
			_exit(*(volatile char *)(FAR + 9 * GB) == 9 && *p[7] == 9 ? 42 : 1);
		if (waitpid(child, &status, 0) != child)
			_exit(1);
		_exit(WEXITSTATUS(status));
	}
	*page_at(FAR + 10 * GB) = 10;
	if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 42 || *p[7] != 8)
		_exit(2);
	child = vfork();
	if (!child) {
		*page_at(FAR + 11 * GB) = 11;
		_exit(*p[3] + *(volatile char *)(FAR + 10 * GB));
	}
	if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 14 ||
	    *(volatile char *)(FAR + 11 * GB) != 11)
		_exit(3);
	if (posix_spawn(&child, argv[0], NULL, NULL, argv, NULL) ||
	    waitpid(child, &status, 0) != child || status)
		_exit(4);
}

static void said(const struct end *end)
{
	if (end->words[0])
		diag("%s", end->words);
}

static void test_process(void)
{
	struct end end = run(touch_50);

	is(end.code, 0, "memory in 50 gigabytes");
	said(&end);
	end = run(translate);
	is(end.code, 0, "dune_gpa() and dune_va() are the inverse of each other");
	end = run(children);
	is(end.code, 0, "fork, vfork and posix_spawn with memory in many gigabytes");
	said(&end);
	end = run(wrong_entry);
	is(end.signal, SIGSEGV, "a page-table entry that leads nowhere: SIGSEGV");
	if (granules)
		ok(!!strstr(end.words, "page-table entry"),
		   "an entry that leads nowhere prints a line about it: %.100s", end.words);
	if (granules > 1024) {
		skip("more granules than a test can use up", "the last granule");
		return;
	}
	end = run(map_all);
	is(end.code, 0, "dune_pt_map() succeeds until there is no granule left");
	said(&end);
	end = run(touch_nothing_at_last);
	is(end.signal, SIGSEGV, "without a granule left, an access to nothing: SIGSEGV");
	end = run(copy_nothing_at_last);
	is(end.code, 0, "without a granule left, a call with a bad pointer: EFAULT");
	end = run(touch_all);
	if (!granules) {
		is(end.code, 0, "memory in 100 gigabytes");
		return;
	}
	is(end.signal, SIGBUS, "memory in one gigabyte too many: SIGBUS");
	ok(!!strstr(end.words, " physical address bits"),
	   "one gigabyte too many prints a line about it: %.100s", end.words);
}

/* ---- a pretended processor, in this process, that never enters ---- */

#define SMALL	8

/* libdune/memory/memory.h and host/host.h, which libc's headers do not go with */
struct dune_thread *dune_thread_new(void);
void dune_page_init(const struct dune_config *cfg);
void dune_pt_init(int have_1g);
dune_pte *dune_pt_new(void);
int dune_pt_touch(dune_pte *root, uint64_t va);
int dune_pt_touch_core(dune_pte *root);
void dune_granule_init(uint32_t granules);
long dune_granule_tell(int vcpu, uint64_t gpa);

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

static void test_tables(int have_1g)
{
	struct dune_stats before, after;
	dune_pte *root, *copy;
	uint64_t at = FAR;
	int i, n = 0, used;

	dune_granule_init(SMALL);
	dune_pt_init(have_1g);
	root = dune_pt_new();
	ok(root && dune_gpa((uint64_t)root) != (uint64_t)root,
	   "a root has a guest-physical address of its own");
	ok(dune_gpa((uint64_t)root) >= GB, "the first granule is not used for the root");
	is(dune_va(dune_gpa((uint64_t)root)), (uint64_t)root,
	   "dune_va() is the inverse of dune_gpa()");
	dune_pt_touch_core(root);
	dune_pt_touch(root, at + 12345);
	used = dune_gpa(at) / GB;
	ok(used >= 2 && used <= 4, "granules of the library itself: %d", used - 1);
	ok(leads(root, at + 12345, at + 12345, 1 + have_1g),
	   "a new table maps addresses to themselves, in large pages");
	is(dune_pt_split(root, at + MB2, PAGE, PAGE), 0, "dune_pt_split() of a large page");
	ok(leads(root, at + MB2 + 1, at + MB2 + 1, 0),
	   "a page that was split maps to itself, in 4 KB");
	ok(leads(root, at + 2 * MB2 + 7, at + 2 * MB2 + 7, 1),
	   "the neighbour of a page that was split maps to itself, in 2 MB");
	is(dune_pt_map(root, at + MB2, PAGE, (uint64_t)root, DUNE_PT_RW), 0,
	   "dune_pt_map() of a page to other memory");
	ok(leads(root, at + MB2 + 8, (uint64_t)root + 8, 0),
	   "a page that was mapped leads to the memory that was named");
	is(dune_pt_unmap(root, at + 2 * MB2, PAGE), 0, "dune_pt_unmap() of a page");
	is(walk(dune_gpa((uint64_t)root), at + 2 * MB2, &i), -1,
	   "a page that was unmapped leads nowhere");
	is(dune_pt_protect(root, at + 2 * MB2, PAGE, DUNE_PT_RO), 0,
	   "dune_pt_protect() of a page that was unmapped");
	ok(leads(root, at + 2 * MB2 + 9, at + 2 * MB2 + 9, 0),
	   "dune_pt_protect() brings an unmapped page back");
	is(dune_pt_walk(root, at, GB, count, &n), 0, "dune_pt_walk() over a gigabyte");
	is(n, 510 + 512 + 511, "a walk finds that all entries but one lead to themselves");
	dune_stats(&before);
	copy = dune_pt_clone(root);
	ok(copy && leads(copy, at + MB2 + 8, (uint64_t)root + 8, 0),
	   "dune_pt_clone() copies an entry");
	is(dune_pt_map(copy, at + MB2, PAGE, at, DUNE_PT_RW), 0, "dune_pt_map() changes the copy");
	ok(leads(copy, at + MB2 + 8, at + 8, 0) && leads(root, at + MB2 + 8, (uint64_t)root + 8, 0),
	   "a change of the copy does not change the first table");
	is(dune_pt_free(copy), 0, "dune_pt_free() of the copy");
	dune_stats(&after);
	is(after.table_bytes, before.table_bytes,
	   "dune_pt_free() gives all of the copy's tables back");
	is(dune_pt_map(root, at + 8 * MB2, 4 * MB2, at + 16 * MB2, DUNE_PT_RW), 0,
	   "dune_pt_map() of large pages");
	ok(leads(root, at + 9 * MB2 + 3, at + 17 * MB2 + 3, 1), "large pages are mapped in 2 MB");
	is(dune_pt_map(root, at, GB, at, DUNE_PT_RW), 0,
	   "dune_pt_map() of a gigabyte, in the pages that it has");
	ok(leads(root, at + 9 * MB2 + 3, at + 9 * MB2 + 3, 1),
	   "dune_pt_map() of a gigabyte to itself restores its pages");
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
	get_granules();
	diag("granules of the module: %u", granules);
	test_process();
	test_pretended(1);
	test_pretended(0);
	return done();
}
