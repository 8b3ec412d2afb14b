// SPDX-License-Identifier: MIT OR Apache-2.0
/* The library's locks and lists around the making of a child. */
#include "fork.h"
#include "process.h"
#include "text.h"

void dune_fork_lock(struct dune_thread *t)
{
	int i;

	dune_lock(&t->sighand->lock);
	for (i = 0; i < LOCKS; i++)
		dune_lock(&dune_process.locks[i]);
}

void dune_fork_unlock(struct dune_thread *t)
{
	int i;

	for (i = LOCKS - 1; i >= 0; i--)
		dune_unlock(&dune_process.locks[i], 0);
	dune_unlock(&t->sighand->lock, 0);
}

void dune_fork_begin(struct dune_thread *t)
{
	dune_process.threads = t;
	t->next = NULL;
	memset(dune_process.old_counters, 0, sizeof(dune_process.old_counters));
	dune_process.signals = 0;
	dune_process.forks = 0;
}

/* Releases @l if @child, which is gone, holds it. */
static void release(const struct dune_thread *child, struct dune_lock *l)
{
	if (READ_ONCE(l->holder) == dune_lock_holder(child))
		dune_unlock(l, 0);
}

void dune_fork_release(const struct dune_thread *child, struct dune_thread *t)
{
	struct dune_sighand *sh = t->sighand;
	int i;

	for (i = 0; i < LOCKS; i++)
		release(child, &dune_process.locks[i]);
	if (READ_ONCE(sh->lock.holder) == dune_lock_holder(child))
		dune_undo_set_action(sh);
	release(child, &sh->lock);
}

void dune_fork_no_threads(void)
{
	struct dune_line line = { .n = 0 };
	static bool reported;

	if (!reported) {
		dune_text(&line, "dune: threads (CLONE_THREAD) are not supported yet\n");
		dune_text_print(&line);
	}
	reported = true;
}
