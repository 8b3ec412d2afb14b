// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Pages that fork makes copy-on-write. Fails when a write of the guest reaches the
 * child's page, a write of the child the guest's, or the guest keeps the shared page
 * after its process has got a copy.
 */
#define _GNU_SOURCE
#include "child.h"
#include "memory.h"
#include "tap.h"

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
	area = new_memory(4096);
	under_change(&g, "fork with copy on write", by_fork);
	return memory_end();
}
