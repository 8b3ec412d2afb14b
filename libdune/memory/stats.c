// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Counters: the kernel's, from the page that the kernel shares with each vCPU's thread (struct
 * dune_run), and the library's own. Any thread may ask for them, from outside, too.
 */
#include "memory.h"
#include "thread.h"

_Static_assert(sizeof(((struct dune_stats *)0)->counters) == DUNE_COUNT_MAX * sizeof(u64),
	       "dune.h has another number of counters");

void dune_stats(struct dune_stats *out)
{
	const struct dune_thread *t;
	u64 flags;
	int i;

	memset(out, 0, sizeof(*out));
	flags = dune_lock(&dune_process.locks[LOCK_THREADS]);
	for (i = 0; i < DUNE_COUNT_MAX; i++)
		out->counters[i] = dune_process.old_counters[i];
	for (t = dune_process.threads; t; t = t->next) {
		if (!t->run)
			continue;
		for (i = 0; i < DUNE_COUNT_MAX; i++)
			out->counters[i] += READ_ONCE(t->run->counters[i]);
	}
	dune_unlock(&dune_process.locks[LOCK_THREADS], flags);
	out->signals = READ_ONCE(dune_process.signals);
	out->forks = READ_ONCE(dune_process.forks);
	out->arena_bytes = dune_page_bytes();
	out->table_bytes = dune_pt_bytes();
}
