// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Guest-physical addresses: what a program sees of them, and what happens when they are used up
 * or wrong. Fails when memory is not found by its guest-physical address, when a child loses a
 * granule of its parent's, or when a program whose granules are used up ends without a
 * message. (granule_narrow.c tests what the page-table calls write.)
 */
#define _GNU_SOURCE
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
#include <sys/wait.h>
#include <unistd.h>
#include "tap.h"
#include "x86.h"

/* Unused addresses: a place for one page in each gigabyte from here on. */
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
		bail("pipe: %m");
	fflush(stdout);
	child = fork();
	if (!child) {
		dup2(channel[1], 2);
		if (dune_enter(NULL))
			child_fails("dune_enter() failed");
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
		child_fails("mmap() failed");
	return p;
}

static void touch(unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++)
		*page_at(FAR + i * GB) = i;
	for (i = 0; i < count; i++) {
		if (*(volatile char *)(FAR + i * GB) != (char)i)
			child_fails("a page has another value");
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
			child_fails("dune_pt_map() failed, and not with ENOMEM");
	}
	return i;
}

static void map_all(void)
{
	unsigned int i = use_up();
	pid_t child;
	int status;

	if (granules && (i >= granules || i < granules - 20))
		child_fails("there are more or fewer mappings than granules");
	if (!granules && i != 100)
		child_fails("there are fewer than 100 mappings");
	/* Memory that was mapped already stays usable. */
	child = fork();
	if (!child)
		_exit(i & 63);
	if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != (int)(i & 63))
		child_fails("a child after the last granule ends with another status");
	if (dune_pt_map(dune_pt_root(), FAR, 2 * PAGE, (uint64_t)page_at(FAR + 8 * PAGE),
			DUNE_PT_RW) && !granules)
		child_fails("dune_pt_map() of usable memory failed");
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
	    dune_gpa(1UL << 60) != (granules ? ~0UL : 1UL << 60))
		child_fails("dune_va() or dune_gpa() gives another address");
	if (granules && (dune_gpa(va) == va || dune_va(4096) != ~0UL))
		child_fails("with granules, an address is not translated");
	if (dune_pt_split(dune_pt_root(), va, PAGE, PAGE))
		child_fails("dune_pt_split() failed");
	e = dune_pt_entry(dune_pt_root(), va, &size);
	if (size != PAGE || dune_va(*e & DUNE_PTE_ADDR) != va)
		child_fails("an entry leads to another address");
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
				child_fails("the child has another value in its parent's memory");
		}
		/* and a gigabyte that its parent does not have */
		*page_at(FAR + 9 * GB) = 9;
		child = fork();
		if (!child)
			_exit(*(volatile char *)(FAR + 9 * GB) == 9 && *p[7] == 9 ? 42 : 1);
		if (waitpid(child, &status, 0) != child)
			child_fails("waitpid() in the child failed");
		_exit(WEXITSTATUS(status));
	}
	*page_at(FAR + 10 * GB) = 10;
	if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 42 || *p[7] != 8)
		child_fails("the child failed, or changed its parent's memory");
	child = vfork();
	if (!child) {
		*page_at(FAR + 11 * GB) = 11;
		_exit(*p[3] + *(volatile char *)(FAR + 10 * GB));
	}
	if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 14 ||
	    *(volatile char *)(FAR + 11 * GB) != 11)
		child_fails("the child of vfork() has not its parent's memory");
	if (posix_spawn(&child, argv[0], NULL, NULL, argv, NULL) ||
	    waitpid(child, &status, 0) != child || status)
		child_fails("posix_spawn() failed");
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

int main(void)
{
	get_granules();
	diag("granules of the module: %u", granules);
	test_process();
	return done();
}
