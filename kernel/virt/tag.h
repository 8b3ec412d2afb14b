/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tags of the TLB, with which a processor keeps the entries of its guests apart: SVM's
 * ASIDs, VT-x's VPIDs. Each CPU hands out its own (tag.c).
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

/*
 * Called once, before virtualization is on: the CPUs hand out the numbers from @first up to
 * @end - 1.
 */
void tags_init(u32 first, u32 end);

/* Returns the highest number. For any context, after tags_init(). */
u32 tags_highest(void);

/* Makes all tags that this CPU has handed out invalid. The caller has interrupts off. */
void tags_invalidate(void);

/*
 * Gives @tag a fresh number of this CPU; tags_must_flush() may be true afterwards. Interrupts
 * are off.
 */
void tag_take(struct tag *tag);

/*
 * Returns whether @tag, which was taken on this CPU, is still valid. Interrupts are off. A
 * generation ends while another thread runs on the CPU, while the CPU is off, or when the CPU's
 * virtualization is turned on, which advances virt_epoch. So a caller needs to check only after a
 * context switch and after a change of the epoch.
 */
static inline bool tag_is_valid(const struct tag *tag)
{
	return tag->generation == this_cpu_read(tag_pool.generation);
}

/*
 * Returns whether the vendor must flush all tags before the next entry on this CPU. Interrupts
 * are off.
 */
static inline bool tags_must_flush(void)
{
	return this_cpu_read(tag_pool.must_flush);
}

/*
 * Records whether a flush of all tags is still needed. @must_flush: false when the vendor has asked
 * the processor for the flush, true when the processor refused it. Interrupts are off.
 */
static inline void tags_set_must_flush(bool must_flush)
{
	this_cpu_write(tag_pool.must_flush, must_flush);
}

#endif /* VIRT_TAG_H */
