// SPDX-License-Identifier: MIT OR Apache-2.0
/* The number of the CPU, which ring 3 reads from the limit of a segment. */
#include "alone.h"

/* Tells the vDSO and libc the CPU, if the thread has come to another one. */
void dune_alone_look_at_cpu(struct dune_thread *t)
{
	u64 n = t->run->counters[DUNE_COUNT_MIGRATION];
	u64 mark;
	u32 *cpu, *node;

	if (likely(n == t->migrations))
		return;
	t->migrations = n;
	mark = dune_copies_mark();
	cpu = dune_alone_result(sizeof(*cpu));
	node = dune_alone_result(sizeof(*node));
	dune_hypercall(__NR_getcpu, dune_kernel_at(cpu), dune_kernel_at(node), 0, 0, 0, 0);
	dune_gdt_set_limit(t, *node << 12 | *cpu);
	dune_copies_release(mark);
}
