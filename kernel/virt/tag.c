// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pool of TLB tags: see tag.h. This file only counts; the vendors flush.
 */
#include <linux/cpumask.h>
#include <linux/lockdep.h>

#include "virt/tag.h"

DEFINE_PER_CPU(struct tag_pool, tag_pool);

static u32 first_tag __ro_after_init;
static u32 end_of_tags __ro_after_init;

void tags_init(u32 first, u32 end)
{
	int cpu;

	first_tag = first;
	end_of_tags = end;
	for_each_possible_cpu(cpu) {
		struct tag_pool *pool = &per_cpu(tag_pool, cpu);

		/* No guest has a tag of this generation. */
		pool->generation = 1;
		pool->next = end;
	}
}

u32 tags_highest(void)
{
	return end_of_tags - 1;
}

/* The next tag_take() then begins another generation. */
void tags_invalidate(void)
{
	struct tag_pool *pool = this_cpu_ptr(&tag_pool);

	lockdep_assert_irqs_disabled();
	pool->generation++;
	pool->next = end_of_tags;
}

void tag_take(struct tag *tag)
{
	struct tag_pool *pool = this_cpu_ptr(&tag_pool);

	lockdep_assert_irqs_disabled();
	if (pool->next >= end_of_tags) {
		pool->generation++;
		pool->next = first_tag;
		pool->must_flush = true;
	}
	tag->number = pool->next++;
	tag->generation = pool->generation;
}
