// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The lives of vCPUs that a guest without a host half makes for its children (DUNE_MAKE_CHILD).
 * Fails when memory stays charged, or a reference to the module stays, after children that were
 * never made, whose fork failed, that died before they entered their vCPU, or that have outlived
 * their parents; when a copy of sealed pages takes memory; when a request without memory leaves
 * something; and when the last of many children does not begin.
 */
#define _GNU_SOURCE
#include "by_fork.h"
#include "cgroup.h"
#include "child.h"
#include "klog.h"
#include "modules.h"
#include "private.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT	(64UL << 20)
#define PAGES	250UL		/* what child_private_add() can add, nearly */
#define MANY	1000
#define SLACK	(1L << 20)

static volatile struct shared {
	int pid;
	u64 count, failed;
	long result;
	bool ready, go, stop;
} *shared;

static bool cgroups;
static long before;

static void begin_case(void)
{
	memset((void *)shared, 0, sizeof(*shared));
	if (!cgroups)
		return;
	cgroup_empty();
	before = cgroup_charge();
}

/* The verdicts after a case, whose process has ended in @o. */
static void end_case(const char *name, struct outcome o)
{
	long left = 0;

	ok(!o.code, "%s (%s, %ld, %lu, %lu)", name, outcome_text(o), shared->result, shared->count,
	   shared->failed);
	is(dune_users_left(), 0, "%s: no reference to the module is left", name);
	if (cgroups) {
		left = cgroup_charge_below(before + SLACK) - before;
		ok(left <= SLACK, "%s: nothing is charged (%ld KB)", name, left / 1024);
	}
}

/* Begins a case: fn(arg) in a guest without a host half. Returns the process. */
static int begin_life(u64 (*fn)(void *arg), void *arg)
{
	int pid;

	begin_case();
	pid = checked_fork();
	if (pid)
		return pid;
	if (cgroups)
		cgroup_join();
	alone_start(0, fn, arg);
}

static void life(const char *name, u64 (*fn)(void *arg), void *arg)
{
	end_case(name, wait_child(begin_life(fn, arg), 300));
}

/* The same while the parent does @watch; nothing else ends the guest. */
static void life_watched(const char *name, u64 (*fn)(void *arg), void (*watch)(int pid))
{
	int pid = begin_life(fn, NULL);

	watch(pid);
	end_case(name, wait_child(pid, 60));
}

/* ---- in the guest */

static void wait_for_parent(void)
{
	shared->ready = true;
	while (!shared->go)
		hypercall0(SYS_sched_yield);
}

static u64 never_born(void *arg)
{
	if (!child_private_add(PAGES, NULL))
		return 1;
	for (int i = 0; i < 100; i++) {
		shared->result = child_make(DUNE_MAKE_CHILD, never_born) ?:
				 child_make(DUNE_MAKE_SHARED_CHILD, never_born);
		if (shared->result)
			return 2;
		shared->count++;
	}
	return child_make(DUNE_MAKE_CHILD, never_born);
}

/* The fork copies the mappings, and fails afterwards. */
static u64 fork_fails(void *arg)
{
	long pid;

	if (!child_private_add(PAGES, NULL))
		return 1;
	for (int i = 0; i < 100; i++) {
		if (child_make(DUNE_MAKE_CHILD, fork_fails))
			return 2;
		shared->result = privileged(SYS_clone, CLONE_PIDFD | SIGCHLD, 0, 8, 0);
		if (shared->result != -EFAULT)
			return 3;
		shared->count++;
	}
	pid = child_fork(SIGCHLD);
	if (!pid)
		child_exit(0);
	return child_wait(pid);
}

/* It fails before it copies anything, and the vCPU is for the next one. */
static u64 fork_refused(void *arg)
{
	static struct rlimit limit = { 0, 1000 }, old = { 1000, 1000 };
	long pid;

	if (hypercall3(SYS_setresuid, 65534, 65534, 65534))
		return 1;
	for (int i = 0; i < 50; i++) {
		hypercall(SYS_prlimit64, 0, RLIMIT_NPROC, (long)&limit, 0, 0, 0);
		shared->result = child_fork(SIGCHLD);
		if (shared->result != -EAGAIN)
			return 2;
		shared->count++;
	}
	hypercall(SYS_prlimit64, 0, RLIMIT_NPROC, (long)&old, 0, 0, 0);
	pid = child_fork(SIGCHLD);
	if (!pid)
		child_exit(0);
	return child_wait(pid);
}

static u64 without_number(void *arg)
{
	static struct rlimit limit = { 0, 0 };

	hypercall(SYS_prlimit64, 0, RLIMIT_NOFILE, (long)&limit, 0, 0, 0);
	for (int i = 0; i < 20; i++) {
		shared->result = child_signal(child_fork(SIGCHLD | CLONE_FILES));
		if (shared->result != SIGILL)
			return 1;
	}
	return 0;
}

static u64 many(void *arg)
{
	if (!child_private_add(20, NULL))
		return 1;
	for (u64 i = 0; i < (u64)arg; i++) {
		long pid = child_fork(SIGCHLD);

		if (!pid)
			child_exit(0);
		shared->result = child_wait(pid);
		if (shared->result)
			return 2;
		shared->count++;
	}
	return 0;
}

static u64 return_0(void *arg)
{
	return 0;
}

static u64 many_shared(void *arg)
{
	for (u64 i = 0; i < (u64)arg; i++) {
		shared->result = child_wait(child_share(CLONE_VM | CLONE_VFORK | SIGCHLD, return_0,
							NULL));
		if (shared->result)
			return 2;
		shared->count++;
	}
	return 0;
}

/* Each has one child and ends before that, also the first one, for which the test waits. */
static u64 outlived(void *arg)
{
	if (!child_private_add(PAGES, NULL))
		return 1;
	for (int i = 0; i < 60; i++) {
		long pid = child_fork(SIGCHLD);

		if (pid < 0) {
			shared->result = pid;
			return 2;
		}
		if (pid)
			child_exit(0);
		shared->count++;
	}
	wait_for_parent();
	child_exit(0);
}

static long users_of_one;

static void watch_one(int pid)
{
	if (!WAIT_FOR(shared->ready, 20))
		bail("no guest");
	users_of_one = dune_users_now();
	shared->go = true;
}

static u64 one(void *arg)
{
	wait_for_parent();
	return 0;
}

static void watch_outlived(int pid)
{
	long users, charge, most = PAGES * 4096 + 2 * SLACK;

	WAIT_FOR(shared->ready, 60);
	ok(shared->ready, "60 generations begin (%lu)", shared->count);
	users = module_users("dune", users_of_one);
	is(users, users_of_one, "the last one has as many references as one process");
	if (cgroups) {
		charge = cgroup_charge_below(before + most) - before;
		ok(charge <= most, "the memory of one is charged (%ld KB)", charge / 1024);
	}
	shared->go = true;
}

/* ---- children that die before they enter */

static u64 trace_me(void *arg)
{
	if (!child_private_add(PAGES, NULL))
		return 1;
	wait_for_parent();
	for (int i = 0; i < 20; i++) {
		long pid = child_fork(SIGCHLD);

		if (!pid)
			child_exit(1);
		if (child_signal(pid) != SIGKILL)
			return 2;
		shared->count++;
	}
	while (!shared->stop)
		hypercall0(SYS_sched_yield);
	return 0;
}

static void kill_children(int pid)
{
	int stopped, status;

	if (!WAIT_FOR(shared->ready, 20))
		bail("no guest");
	if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEFORK | PTRACE_O_TRACECLONE))
		bail("PTRACE_SEIZE: %m");
	shared->go = true;
	while (shared->count < 20) {
		stopped = waitpid(-1, &status, __WALL | WNOHANG);
		if (stopped < 0 || (stopped == pid && !WIFSTOPPED(status)))
			bail("the parent of the children ends");
		if (!stopped || !WIFSTOPPED(status))
			continue;
		/* A new child has not executed an instruction of user mode. */
		if (stopped != pid)
			kill(stopped, SIGKILL);
		ptrace(PTRACE_CONT, stopped, 0,
		       stopped == pid && status >> 16 == 0 && WSTOPSIG(status) != SIGTRAP ?
		       WSTOPSIG(status) : 0);
		shared->failed += stopped != pid;
	}
	ok(shared->count == 20 && shared->failed >= 20, "20 children are killed before they begin "
	   "(%lu, %lu stops)", shared->count, shared->failed);
	ptrace(PTRACE_INTERRUPT, pid, 0, 0);
	waitpid(pid, &status, __WALL);
	ptrace(PTRACE_DETACH, pid, 0, 0);
	shared->stop = true;
}

/* ---- memory */

#define SEALED	200UL

/* Pages of which each is a copy of the same memory. */
static u64 sealed(void *arg)
{
	static char contents[SEALED * 4096];
	long pids[10];

	for (int i = 0; i < 10; i++) {
		/* After 2 MB the pages have no address in the guest, and need none. */
		child_private_add(SEALED, contents);
	}
	for (int i = 0; i < 10; i++) {
		pids[i] = child_fork(SIGCHLD);
		if (!pids[i]) {
			while (!shared->go)
				hypercall0(SYS_sched_yield);
			child_exit(0);
		}
	}
	shared->ready = true;
	for (int i = 0; i < 10; i++)
		if (child_wait(pids[i]))
			return 1;
	return 0;
}

static void watch_sealed(int pid)
{
	long charge, all = 10 * SEALED * 4096;

	ok(WAIT_FOR(shared->ready, 60), "ten children of a process with sealed pages begin");
	if (cgroups) {
		charge = cgroup_charge_below(before + 2 * all) - before;
		ok(charge >= all && charge <= 2 * all, "they take no memory for the pages: "
		   "%ld KB are charged, and %ld KB are sealed", charge / 1024, all / 1024);
	}
	shared->go = true;
}

#define BALLAST	400

/*
 * At the limit of a cgroup without an OOM killer a request fails. It is made again with a little
 * more memory each time, so that it fails at many places, until it succeeds.
 */
static u64 no_memory(void *arg)
{
	char *ballast = (char *)hypercall(SYS_mmap, 0, BALLAST * 4096, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	long pid;

	while (child_private_add(100, NULL))
		shared->count++;
	while (child_private_add(1, NULL))
		shared->count++;
	for (int i = 0; i < BALLAST; i++) {
		shared->result = child_make(i & 1 ? DUNE_MAKE_CHILD : DUNE_MAKE_SHARED_CHILD,
					    no_memory);
		if (shared->result && shared->result != -ENOMEM)
			return 2;
		shared->failed += !!shared->result;
		hypercall3(SYS_madvise, (long)ballast + i * 4096, 4096, MADV_DONTNEED);
	}
	shared->result = 0;
	pid = child_make(DUNE_MAKE_SHARED_CHILD, no_memory);
	return pid || !shared->failed;
}

int main(void)
{
	enum cgroups version;
	struct klog log;
	long rounds;

	begin(900);
	klog_begin(&log);
	rounds = env_number("TEST_FORKS", MANY);
	shared = shared_alloc(sizeof(*shared));
	if (!alone_vcpus())
		return done();
	version = cgroup_mount();
	cgroups = version != CGROUPS_NONE && cgroup_make(LIMIT);
	if (!cgroups)
		skip("this kernel has no memory cgroups", "children are charged");
	life("children that are never made", never_born, NULL);
	life("forks that fail after the mappings were copied", fork_fails, NULL);
	life("forks that are refused", fork_refused, NULL);
	life("children for whose vCPU there is no number", without_number, NULL);
	life("many children", many, (void *)rounds);
	life("many children that share memory", many_shared, (void *)rounds);
	life_watched("one process", one, watch_one);
	life_watched("children that outlive their parents", outlived, watch_outlived);
	life_watched("children that die before they begin", trace_me, kill_children);
	life_watched("children with sealed pages", sealed, watch_sealed);
	if (cgroups && version == CGROUPS_1) {
		cgroup_set_oom_killer(false);
		life("vCPUs for which there is no memory", no_memory, NULL);
	} else {
		skip("no memory cgroups of version 1", "vCPUs for which there is no memory");
	}
	if (cgroups) {
		cgroup_empty();
		ok(cgroup_remove(), "the cgroup is removed");
	}
	cgroup_unmount();
	klog_end(&log);
	return done();
}
