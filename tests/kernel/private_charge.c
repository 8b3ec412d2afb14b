// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Private memory is charged to its process's memory cgroup, and given back however the process
 * ends. Fails when a page is not charged, or not counted as the process's (VmPTE); when a request
 * that did not get all its pages keeps some; when pages stay charged after exit, kill -9, exec,
 * close or the OOM killer; and when a reference to the module stays.
 */
#define _GNU_SOURCE
#include "cgroup.h"
#include "child.h"
#include "modules.h"
#include "private.h"
#include "proc.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define LIMIT	(64UL << 20)
#define PAGES	8192UL		/* 32 MB */
#define SLACK	(2UL << 20)	/* what a process has besides */

static volatile int *step;

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

	cgroup_join();
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

	cgroup_empty();
	before = cgroup_charge();
	*step = 0;
	pid = checked_fork();
	if (!pid)
		have_and_end((void *)(long)how);
	for (int ms = 0; !*step && ms < 20000; ms += 10)
		sleep_ms(10);
	/* What was charged before may be charged no more. */
	ok(*step == 1 && cgroup_charge() - before >= (long)(PAGES * 4096 - SLACK),
	   "a process with private memory is charged for it (%ld KB)",
	   (cgroup_charge() - before) / 1024);
	*step = 2;
	if (how == BY_EXEC || how == BY_CLOSE) {
		left = cgroup_charge_below(before + SLACK);
		ok(left <= before + (long)SLACK, "after %s it is charged no more (%ld KB left)",
		   how_names[how], (left - before) / 1024);
		kill(pid, SIGKILL);
	}

	struct outcome o = wait_child(pid, 60);

	left = cgroup_charge_below(before + SLACK);
	ok(outcome_is(o, how == BY_EXIT ? 0 : SIGKILL),
	   "the process ends by %s (%s)", how_names[how], outcome_text(o));
	ok(left <= before + (long)SLACK, "after %s nothing is charged (%ld KB left)",
	   how_names[how], (left - before) / 1024);
}

/* In a cgroup without an OOM killer: a request that is too large leaves nothing. */
static void too_much(void *arg)
{
	u64 first, second;
	struct guest g;

	cgroup_join();
	guest_open(&g);
	if (private_add(&g, 1, &first))
		child_fails("the first page is not added");

	long before = cgroup_charge();

	if (private_add(&g, 3 * PAGES, &second) != -ENOMEM)
		child_fails("more pages than the cgroup may have are not ENOMEM");
	/* The kernel keeps some pages charged for each CPU. */
	if (cgroup_charge() > before + (long)SLACK)
		child_fails("the cgroup stays charged with %ld KB",
			    (cgroup_charge() - before) / 1024);
	if (private_add(&g, 1, &second) || second != first + 4096)
		child_fails("the next page is not added after the first one");
}

static void in_a_group(enum cgroups version)
{
	ok(cgroup_make(LIMIT), "a cgroup is made");
	for (enum how how = 0; how <= BY_OOM; how++)
		charged_until(how);
	/* In version 2 there is always the OOM killer. */
	if (version == CGROUPS_1) {
		cgroup_set_oom_killer(false);

		struct outcome o = in_child(too_much, NULL, 60);

		ok(outcome_is(o, 0),
		   "a request without memory: ENOMEM, and nothing was added (%s)",
		   outcome_text(o));
	} else {
		skip("no memory cgroups of version 1", "a request without memory: ENOMEM");
	}
	cgroup_empty();
	ok(cgroup_remove(), "the cgroup is removed");
}

int main(void)
{
	struct guest g;
	bool exists = private_begin(&g, 300);

	guest_close(&g);
	step = shared_alloc(4096);
	if (exists) {
		enum cgroups version = cgroup_mount();

		if (version == CGROUPS_NONE)
			skip("this kernel has no memory cgroups", "private memory is charged");
		else
			in_a_group(version);
		cgroup_unmount();
	}
	is(dune_users_left(), 0, "nobody uses the module any more");
	return private_end();
}
