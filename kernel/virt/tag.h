/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tags of the TLB, with which a processor keeps apart the entries of its guests:
 * SVM's ASIDs, VT-x's VPIDs. Each CPU hands out its own (tag.c).
 *
 * A fresh tag has no entries in the TLB. When a CPU has used up all numbers, it
 * begins a new generation of tags, and all entries have to be flushed once.
 */
#ifndef VIRT_TAG_H
#define VIRT_TAG_H

#include <linux/percpu.h>
#include <linux/types.h>

/**
 * struct tag - a guest's tag on the CPU that it last took one on
 * @generation:	the CPU's, when the tag was taken; 0: never
 * @number:	what the processor calls ASID or VPID
 */
struct tag {
	u64 generation;
	u32 number;
};

/**
 * struct tag_pool - the tags of one CPU; used on that CPU, with interrupts off
 * @generation:	tags of an older generation are not valid
 * @next:	the next number of this generation
 * @must_flush:	all tags must be flushed before the next entry with a tag of this
 *		pool: the generation has begun, and no flush has been carried out
 */
struct tag_pool {
	u64 generation;
	u32 next;
	bool must_flush;
};

DECLARE_PER_CPU(struct tag_pool, tag_pool);

/* Once, before virtualization is on: numbers from @first up to @end - 1. */
void tags_init(u32 first, u32 end);

/* The highest number. */
u32 tags_highest(void);

/* This CPU, interrupts off: no tag taken here before is valid any more. */
void tags_invalidate(void);

/* This CPU, interrupts off: a fresh tag. tags_must_flush() may be true now. */
void tag_take(struct tag *tag);

/*
 * Interrupts off. A generation ends only while another thread runs on the CPU, or
 * while the CPU is off. So it is enough to look after a context switch whether
 * the tag is still valid; @tag must have been taken on this CPU.
 */
static inline bool tag_is_valid(const struct tag *tag)
{
	return tag->generation == this_cpu_read(tag_pool.generation);
}

static inline bool tags_must_flush(void)
{
	return this_cpu_read(tag_pool.must_flush);
}

/* The vendor flushes all tags on this CPU, or has learned that it did not. */
static inline void tags_set_must_flush(bool must_flush)
{
	this_cpu_write(tag_pool.must_flush, must_flush);
}

#endif /* VIRT_TAG_H */
