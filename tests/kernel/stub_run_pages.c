// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The run pages of children that share memory (DUNE_MAKE_SHARED_CHILD) are private memory, which
 * only grows, so they are used again. Fails when one that waits to be used is lost in the copy for
 * a child by fork, when that of the first vCPU is lost, which on Intel is at guest-physical address
 * 0, and when a request for which there is no page fails in another way than it should.
 */
#define _GNU_SOURCE
#include "by_fork.h"
#include "child.h"
#include "klog.h"
#include "private.h"
#include "tap.h"
#include "timing.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define VFORK		(CLONE_VM | CLONE_VFORK | SIGCHLD)
#define GENERATIONS	16

/* What guests leave for the parent. */
static volatile struct shared {
	u64 lowest, highest;	/* of the run pages of children that share memory */
	u64 generation, first;
	long result[2];
	bool ready, done;
} *shared;

static struct outcome run(u64 (*fn)(void *arg), const void *arg)
{
	memset((void *)shared, 0, sizeof(*shared));
	shared->lowest = ~0UL;
	return alone_in_child(fn, (void *)arg, 60);
}

static u64 note_run_page(void *arg)
{
	if (child_run < shared->lowest)
		shared->lowest = child_run;
	if (child_run > shared->highest)
		shared->highest = child_run;
	return 0;
}

/* ---- generations, each of which has a child that shares its memory */

static u64 generation(void *arg);

static u64 exit_code(long status)
{
	return status >= 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

/* A fork whose child is the next generation. */
static u64 next_generation(void *arg)
{
	long pid = child_fork(SIGCHLD);

	if (!pid)
		child_exit(generation(arg));
	return pid < 0 ? 101 : exit_code(child_wait(pid));
}

static u64 next_generation_in_shared(void *arg)
{
	struct dune_run *parents = alone_run;
	u64 ret;

	note_run_page(NULL);
	alone_run = private_at(child_run);
	ret = next_generation(arg);
	alone_run = parents;
	return ret;
}

static const struct line {
	const char *name;
	u64 (*in_shared)(void *arg);
	u64 (*after)(void *arg);
} lines[] = {
	{ "a child by vfork and then one by fork", note_run_page, next_generation },
	{ "a child by vfork that forks", next_generation_in_shared, NULL },
};

static u64 generation(void *arg)
{
	const struct line *l = arg;
	u64 status;

	if (shared->generation++ == GENERATIONS)
		return 0;
	status = exit_code(child_wait(child_share(VFORK, l->in_shared, arg)));
	return status || !l->after ? status : l->after(arg);
}

static void generations(void)
{
	for (unsigned int i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		const struct line *l = &lines[i];
		struct outcome o = run(generation, l);
		u64 used = (shared->highest - shared->lowest) / 4096 + 1;

		/* The kernel may close a dead child's vCPU a little later. */
		ok(!o.code && shared->generation > GENERATIONS && used <= 4,
		   "%d generations, each with %s, use the same run pages (%s, %lu, %lu pages)",
		   GENERATIONS, l->name, outcome_text(o), shared->generation, used);
	}
}

/* ---- the first run page */

/* Its own page follows that of the process that made it, for whose end it waits. */
static u64 use_first(void *arg)
{
	long parent = (long)arg;

	shared->first = child_run - 4096;
	shared->ready = true;
	while (hypercall0(SYS_getppid) == parent)
		hypercall0(SYS_sched_yield);
	shared->result[0] = child_wait(child_share(VFORK, note_run_page, NULL));
	shared->done = true;
	return 0;
}

static u64 leave_first(void *arg)
{
	long self = hypercall0(SYS_getpid);

	if (child_share(CLONE_VM | SIGCHLD, use_first, (void *)self) < 0)
		return 1;
	while (!shared->ready)
		hypercall0(SYS_sched_yield);
	return 0;
}

static void first_page(void)
{
	struct outcome o = run(leave_first, NULL);
	bool done = WAIT_FOR(shared->done, 20);

	ok(!o.code && done && !shared->result[0] && shared->lowest == shared->first,
	   "the first run page, at %#lx, is used again (%s, status %#lx, at %#lx)", shared->first,
	   outcome_text(o), shared->result[0], shared->lowest);
}

/* ---- no page is left */

static u64 without_page(void *arg)
{
	static struct dune_private p = { .size = sizeof(p) };

	p.pages = alone_guest.info.private_pages - 1;
	shared->result[0] = privileged(SYS_ioctl, alone_guest.fd, DUNE_ADD_PRIVATE, (long)&p, 0);
	if (shared->result[0])
		return 1;
	for (int i = 0; i < 2; i++)
		shared->result[i] = child_make(DUNE_MAKE_SHARED_CHILD, child_exit);
	return 0;
}

static void no_page(void)
{
	struct outcome o = run(without_page, NULL);

	ok(!o.code && shared->result[0] == -ENOSPC && shared->result[1] == -ENOSPC,
	   "a child for which no run page is left: ENOSPC, twice (%s, %ld, %ld)", outcome_text(o),
	   shared->result[0], shared->result[1]);
}

int main(void)
{
	struct klog log;

	begin(240);
	klog_begin(&log);
	shared = shared_alloc(sizeof(*shared));
	if (!alone_vcpus())
		return done();
	generations();
	first_page();
	no_page();
	klog_end(&log);
	return done();
}
