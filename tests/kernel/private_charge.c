// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Private memory is charged to its process's memory cgroup, and given back however the process
 * ends. Fails when a page is not charged, or not counted as the process's (VmPTE); when a request
 * that did not get all its pages keeps some; when pages stay charged after exit, kill -9, exec,
 * close or the OOM killer; and when a reference to the module stays.
 */
#define _GNU_SOURCE
#include "child.h"
#include "modules.h"
#include "private.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROOT	"/tmp/dune-private"
#define GROUP	ROOT "/group"
#define LIMIT	(64UL << 20)
#define PAGES	8192UL		/* 32 MB */
#define SLACK	(2UL << 20)	/* what a process has besides */

static volatile int *step;

static bool unified;	/* the cgroup is of version 2 */

static long charged(void)
{
	return file_number(unified ? GROUP "/memory.current" : GROUP "/memory.usage_in_bytes");
}

/* Have the kernel take back what it can. */
static void empty_group(void)
{
	if (unified)
		file_write(GROUP "/memory.reclaim", "67108864");
	else
		file_write(GROUP "/memory.force_empty", "1");
}

/* The charge when it has settled below @most. Pages are given back with the last descriptor. */
static long charged_left(long most)
{
	long n = charged();

	for (int ms = 0; n > most && ms < 10000; ms += 100) {
		empty_group();
		sleep_ms(100);
		n = charged();
	}
	return n;
}

static void join_group(void)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", getpid());
	if (file_write(GROUP "/cgroup.procs", pid))
		child_fails("the process cannot join the cgroup");
}

enum how { BY_EXIT, BY_KILL, BY_EXEC, BY_CLOSE, BY_OOM };

static const char *const how_names[] = {
	"exit", "kill -9", "exec", "the last close", "the OOM killer",
};

/* Have PAGES, wait until the parent has looked, and end. */
static void have_and_end(void *arg)
{
	enum how how = (long)arg;
	struct guest g;
	u64 gpa;

	join_group();
	guest_open(&g);
	if (private_add(&g, PAGES, &gpa))
		child_fails("the pages are not added");
	if (file_key("/proc/self/status", "VmPTE") < (long)PAGES * 4)
		child_fails("VmPTE does not contain the pages");
	private_show(&g, gpa);
	if (guest_call(&g, guest_load, (void *)PRIVATE_AT) != GUEST_DONE)
		child_fails("the guest does not read the first page");
	*step = 1;
	while (*step == 1)
		sleep_ms(1);
	switch (how) {
	case BY_EXIT:
		break;
	case BY_KILL:
		raise(SIGKILL);
		break;
	case BY_EXEC:
		execl("/bin/sleep", "sleep", "1000", NULL);
		child_fails("/bin/sleep cannot be executed");
	case BY_CLOSE:
		guest_close(&g);
		if (file_key("/proc/self/status", "VmPTE") > 4000)
			child_fails("VmPTE still contains the pages after close()");
		sleep_ms(1000000);
		break;
	case BY_OOM:
		/* As many again are too many for the cgroup. */
		private_add(&g, PAGES, &gpa);
		child_fails("the OOM killer did not end the process");
	}
	_exit(0);
}

static void charged_until(enum how how)
{
	long before, left;
	int pid;

	empty_group();
	before = charged();
	*step = 0;
	pid = fork();
	if (!pid)
		have_and_end((void *)(long)how);
	for (int ms = 0; !*step && ms < 20000; ms += 10)
		sleep_ms(10);
	ok(*step == 1 && charged() - before >= (long)(PAGES * 4096),
	   "a process with private memory is charged for it (%ld KB)",
	   (charged() - before) / 1024);
	*step = 2;
	if (how == BY_EXEC || how == BY_CLOSE) {
		left = charged_left(before + SLACK);
		ok(left <= before + (long)SLACK, "after %s it is charged no more (%ld KB left)",
		   how_names[how], (left - before) / 1024);
		kill(pid, SIGKILL);
	}

	struct outcome o = wait_child(pid, 60);

	left = charged_left(before + SLACK);
	ok(how == BY_EXIT ? !o.code && !o.signal : o.signal == SIGKILL,
	   "the process ends by %s (%s)", how_names[how], outcome_text(o));
	ok(left <= before + (long)SLACK, "after %s nothing is charged (%ld KB left)",
	   how_names[how], (left - before) / 1024);
}

/* In a cgroup without an OOM killer: a request that is too large leaves nothing. */
static void too_much(void *arg)
{
	u64 first, second;
	struct guest g;

	join_group();
	guest_open(&g);
	if (private_add(&g, 1, &first))
		child_fails("the first page is not added");

	long before = charged();

	if (private_add(&g, 3 * PAGES, &second) != -ENOMEM)
		child_fails("more pages than the cgroup may have are not ENOMEM");
	/* The kernel keeps some pages charged for each CPU. */
	if (charged() > before + (long)SLACK)
		child_fails("the cgroup stays charged with %ld KB", (charged() - before) / 1024);
	if (private_add(&g, 1, &second) || second != first + 4096)
		child_fails("the next page is not added after the first one");
}

/* Returns whether there is one now. */
static bool make_group(void)
{
	char limit[24];

	mkdir(ROOT, 0700);
	unified = mount("none", ROOT, "cgroup", 0, "memory");
	if (unified && (mount("none", ROOT, "cgroup2", 0, NULL) ||
			file_write(ROOT "/cgroup.subtree_control", "+memory"))) {
		skip("this kernel has no memory cgroups", "private memory is charged");
		umount(ROOT);
		rmdir(ROOT);
		return false;
	}
	snprintf(limit, sizeof(limit), "%lu", LIMIT);
	ok(!mkdir(GROUP, 0700) &&
	   !file_write(unified ? GROUP "/memory.max" : GROUP "/memory.limit_in_bytes", limit),
	   "a cgroup is made");
	return true;
}

static void in_a_group(void)
{
	for (enum how how = 0; how <= BY_OOM; how++)
		charged_until(how);
	/* In version 2 there is always the OOM killer. */
	if (unified) {
		skip("no memory cgroups of version 1", "a request without memory: ENOMEM");
		return;
	}
	file_write(GROUP "/memory.oom_control", "1");

	struct outcome o = in_child(too_much, NULL, 60);

	ok(!o.code && !o.signal, "a request without memory: ENOMEM, and nothing was added (%s)",
	   outcome_text(o));
	file_write(GROUP "/memory.oom_control", "0");
}

static void remove_group(void)
{
	empty_group();
	ok(!rmdir(GROUP), "the cgroup is removed");
	umount(ROOT);
	rmdir(ROOT);
}

int main(void)
{
	struct guest g;
	bool exists = private_begin(&g, 300);

	guest_close(&g);
	step = shared_alloc(4096);
	if (exists && make_group()) {
		in_a_group();
		remove_group();
	}
	is(dune_users_left(), 0, "nobody uses the module any more");
	return private_end();
}
