// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Pages that fork makes copy-on-write. Fails when a write of the guest reaches the
 * child's page, a write of the child the guest's, or the guest keeps the shared page
 * after its process has got a copy. Also fails when the guest may write any of several
 * mappings that it could write before the fork, whatever it did in between.
 */
#define _GNU_SOURCE
#include "child.h"
#include "memory.h"
#include "tap.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct guest g;

static void forked(void)
{
	volatile u64 *p = new_memory(4096);
	int to[2], pid;
	char c;

	p[0] = 1;
	access_by(&g, guest_load, p, NULL);
	if (pipe(to))
		bail("pipe: %m");
	pid = checked_fork();
	if (!pid) {
		(void)!read(to[0], &c, 1);
		_exit(p[0] == 1 ? 0 : 1);
	}
	ok(access_by(&g, store, p, NULL) == 0, "the guest writes to a page after fork");
	(void)!write(to[1], "x", 1);
	struct outcome o = wait_child(pid, 20);

	ok(o.code == 0, "the child does not see the guest's write after fork (%s)",
	   outcome_text(o));

	p[0] = 5;
	pid = checked_fork();
	if (!pid) {
		p[0] = 6;
		_exit(0);
	}
	wait_child(pid, 20);
	u64 v = 0;

	ok(access_by(&g, guest_load, p, &v) == 0 && v == 5,
	   "the guest does not see the child's write after fork");
}

#define MAPPINGS	6	/* the last one is a huge page */
#define PAGES		3
#define AROUND		(16 * 4096)	/* a fault makes the entries of so much memory */

static u64 *mappings[MAPPINGS];

/* The word by which page @page of mapping @n is known. */
static volatile u64 *word(int n, int page)
{
	return mappings[n] + page * 512 + n;
}

static bool all_are(u64 value)
{
	for (int n = 0; n < MAPPINGS; n++)
		for (int page = 0; page < PAGES; page++)
			if (*word(n, page) != value + n)
				return false;
	return true;
}

/* The pages have these values, and the guest may write all of them. */
static void set_all(u64 value)
{
	for (int n = 0; n < MAPPINGS; n++)
		for (int page = 0; page < PAGES; page++) {
			access_by(&g, store, word(n, page), NULL);
			*word(n, page) = value + n;
		}
}

static int wait_then_compare(int from, u64 value)
{
	char c;
	int pid = checked_fork();

	if (!pid) {
		(void)!read(from, &c, 1);
		_exit(!all_are(value));
	}
	return pid;
}

static bool is_unchanged(int pid, int to)
{
	(void)!write(to, "x", 1);
	return wait_child(pid, 20).code == 0;
}

/* ---- what happens between two forks; it leaves the values as they are */

static void nothing(void)
{
}

static void guest_writes(void)
{
	access_by(&g, store, word(2, 1), NULL);
	*word(2, 1) = 100 + 2;
}

static void guest_reads(void)
{
	*word(2, 1) = 100 + 2;
	access_by(&g, guest_load, word(2, 1), NULL);
}

/* The guest faults at a page that cannot be written, and gets its neighbour as well, which can. */
static void guest_reads_neighbour(void)
{
	*word(2, 1) = 100 + 2;
	mprotect(mappings[2], 4096, PROT_READ);
	mprotect(mappings[2], 4096, PROT_READ | PROT_WRITE);
	access_by(&g, guest_load, word(2, 0), NULL);
}

/* After two forks the guest reads some pages, and then writes all. */
static void several(const char *name, void (*between)(void))
{
	bool read = true, written = true;
	int pipe1[2], pipe2[2], first, second;
	u64 v;

	if (pipe(pipe1) || pipe(pipe2))
		bail("pipe: %m");
	set_all(100);
	first = wait_then_compare(pipe1[0], 100);
	between();
	second = wait_then_compare(pipe2[0], 100);
	for (int n = 0; n < MAPPINGS; n++)
		read &= access_by(&g, guest_load, word(n, n % PAGES), &v) == 0 && v == 100ul + n;
	ok(read, "%s between two forks: the guest reads what was there", name);
	for (int n = MAPPINGS - 1; n >= 0; n--)
		for (int page = 0; page < PAGES; page++)
			written &= access_by(&g, store, word(n, page), NULL) == 0 &&
				   *word(n, page) == STORED;
	ok(written, "%s between two forks: the guest's process sees its writes", name);
	ok(is_unchanged(first, pipe1[1]), "%s between two forks: the first child does not", name);
	ok(is_unchanged(second, pipe2[1]), "%s between two forks: the second child does not", name);
	close(pipe1[0]);
	close(pipe1[1]);
	close(pipe2[0]);
	close(pipe2[1]);
}

static void many_mappings(void)
{
	for (int n = 0; n < MAPPINGS - 1; n++) {
		u64 at = ((u64)new_memory(2 * AROUND) + AROUND - 1) & -AROUND;

		mappings[n] = (u64 *)at;
		/* The kernel does not merge it with the next one. */
		mprotect((void *)(at + PAGES * 4096), AROUND - PAGES * 4096, PROT_NONE);
	}
	mappings[MAPPINGS - 1] = new_huge_page();
	several("nothing", nothing);
	several("a write of the guest", guest_writes);
	several("a write of the process and a read of the guest", guest_reads);
	several("a write of the process and a read of the guest next to it", guest_reads_neighbour);
}

/*
 * fork makes the page copy-on-write: the child's writes are its own, the parent's end
 * the sharing.
 */
static void by_fork(u64 n)
{
	int pid;

	if (n % 10) {
		area[0] = n;
		return;
	}
	pid = checked_fork();
	if (!pid) {
		area[0] = 1;
		_exit(0);
	}
	area[0] = n;
	waitpid(pid, NULL, 0);
}

int main(void)
{
	memory_begin(&g, 60);
	forked();
	many_mappings();
	area = new_memory(4096);
	under_change(&g, "fork with copy on write", by_fork);
	return memory_end();
}
