/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The second level of address translation: from a guest's physical addresses to the
 * pages that the process has. The rest of dune/ includes only this header and calls only
 * second_level_*(). The other headers of memory/ are included here for their structures and
 * the inline functions of the hot path.
 *
 * There are two kinds; the processor that is found at load decides:
 *  - shared (AMD): the processor walks the kernel's own page table of the process,
 *    below a top level that each vCPU has for itself (root.c). A guest-physical address
 *    is an address of the process.
 *  - mirrored (Intel): the processor walks a page table in EPT's format, which is
 *    made on faults from the process's (mirror.c). Guest-physical addresses are
 *    given to the process's addresses by the gigabyte (granule.c).
 * In both kinds other guest-physical addresses lead to private memory (private.c).
 *
 * The hot path asks for the kind by static keys, which cost no branch.
 */
#ifndef DUNE_MEMORY_SECOND_LEVEL_H
#define DUNE_MEMORY_SECOND_LEVEL_H

#include <linux/dune.h>
#include <linux/jump_label.h>
#include <linux/lockdep.h>
#include <linux/sched.h>

#include "dune/memory/kick.h"
#include "dune/memory/level.h"
#include "dune/memory/mirror.h"
#include "dune/memory/private.h"
#include "dune/memory/root.h"
#include "dune/memory/shootdown.h"

/* Set at load: the second level is a mirror; changes of memory kick vCPUs. */
DECLARE_STATIC_KEY_FALSE(second_level_mirrored);
DECLARE_STATIC_KEY_FALSE(second_level_kicks);

/**
 * struct second_level - the second level of one address space
 * @mirror:	if it is mirrored: the mirror, which all address spaces of the
 *		process share; else NULL
 * @tree:	if it is mirrored: the address space's tables in the mirror; else NULL
 * @shootdown:	if it is shared and the kernel flushes TLBs without interrupts: kicks
 *		the vCPUs; else NULL
 * @private:	memory of the address space alone; NULL before the first page is added
 * @inherited:	the granules that the mirror gets by second_level_inherit(); NULL afterwards, and
 *		if there are none
 *
 * Between second_level_get() and second_level_put() only @private changes, once, without a lock
 * (second_level_add_private()), and @inherited before the first vCPU is added. @tree and @private
 * have locks of their own.
 */
struct second_level {
	struct mirror *mirror;
	struct mirror_tree *tree;
	struct shootdown *shootdown;
	struct private_memory *private;
	struct granules *inherited;
};

/**
 * struct second_level_vcpu - the second level of one vCPU
 * @space:	that of its address space; NULL until second_level_add_vcpu()
 * @root:	if it is shared: the vCPU's top level
 * @kick:	gets the vCPU out of the guest after a change of the memory
 * @tlb_gen:	the count of changes for which the TLB tag is known to be clean: see
 *		second_level_enter()
 * @flush:	the TLB tag must be flushed at the next entry
 *
 * Only the vCPU's thread changes it; @kick has rules of its own.
 */
struct second_level_vcpu {
	struct second_level *space;
	struct root root;
	struct kick_vcpu kick;
	u64 tlb_gen;
	bool flush;
};

/*
 * Makes mirrors the kind of second level. VT-x calls it at load, before second_level_init().
 * @accessed_dirty: EPT has accessed and dirty bits; @large_1g: EPT has pages of 1 GB;
 * @address_bits: width of a guest-physical address in bits, 36 or more. May sleep.
 */
void second_level_use_mirror(bool accessed_dirty, bool large_1g, unsigned int address_bits);

/*
 * Decides whether changes of memory kick vCPUs. To learn that, it looks a function of the kernel up
 * (symbol_find()). @address_bits: as above. Called at load; may sleep. Returns 0 or a negative
 * errno.
 */
int second_level_init(unsigned int address_bits);

/*
 * The opposite of second_level_init(). Waits until the last mirror or shootdown is freed. Called
 * before the module is unloaded; may sleep.
 */
void second_level_cleanup(void);

/* Returns dune_info.granules: 0 if a guest-physical address is an address of the process. */
unsigned int second_level_granules(void);

/*
 * Fills in @space for the calling process, or gives up what it holds. Called in process
 * context; both may sleep. second_level_get() takes mmap_lock. It returns 0, -ENOMEM, -EINTR for a
 * fatal signal, or -ERESTARTNOINTR: another signal has ended it, and the system call is restarted.
 */
int second_level_get(struct second_level *space);
void second_level_put(struct second_level *space);

/*
 * DUNE_MAP_GRANULE, if second_level_granules() is not 0. Called in process context; may sleep.
 * Returns 0, -EINVAL, -EEXIST or -ENOMEM.
 */
int second_level_map_granule(const struct second_level *space, u64 gpa, u64 address);

/* Returns dune_info.private_pages. */
static inline unsigned int second_level_private_pages(void)
{
	return private_max;
}

/*
 * Adds pages of 4 KB to private memory; for second_level_private_pages() other than 0. @gpa:
 * returns the guest-physical address of the first one. For the vCPU's thread; may sleep. Returns 0
 * or an error of private_add().
 */
int second_level_add_private(struct second_level_vcpu *vcpu, const struct private_pages *what,
			     u64 *gpa);

/* Returns the guest-physical address of a run page that is private memory. For any context. */
static inline u64 second_level_run_gpa(const struct page *run)
{
	return private_run_gpa(run);
}

/* Returns page @n of the window of @space, or NULL: see private_shown(). */
static inline struct page *second_level_shown(const struct second_level *space, u64 n)
{
	const struct private_memory *private = READ_ONCE(space->private);

	return private ? private_shown(private, n) : NULL;
}

/*
 * Fills in @to, the address space of a process that does not exist yet. It gets a copy of the
 * private memory of @from, with the page @run in the place of @from_run, and the granules that the
 * mirror of @from has now. A template has no mirror, so its copies begin without granules, as the
 * memory after an execve is new. @from must have private memory. May sleep. Returns 0 or an error
 * of private_copy().
 */
int second_level_copy(struct second_level *to, const struct second_level *from,
		      const struct page *from_run, struct page *run);

/*
 * Counts the pages that second_level_copy() has made for the memory @mm of their process. Called in
 * that process when it exists. Does not sleep.
 */
void second_level_move_private(struct second_level *space, struct mm_struct *mm);

/*
 * Gives the granules that second_level_copy() has taken to the mirror of @space, if there is one.
 * Called after second_level_get(), in the process of @space. May sleep. Returns 0, -ENOMEM, or
 * -EEXIST if the process has given some of these granules other addresses.
 */
int second_level_inherit(struct second_level *space);

/*
 * A run page that is private memory is left when its vCPU is gone, and taken for another vCPU of
 * the address space: see private_leave_run(), which ignores other run pages, and
 * private_take_run(), which may sleep.
 */
void second_level_leave_run(struct second_level *space, struct page *run);
struct page *second_level_take_run(struct second_level *space);

/*
 * A nested page fault, with DUNE_FAULT_* in @flags, at a guest-physical address that stands for no
 * address of the process. Returns whether the guest may try again. For the vCPU's thread, in
 * process context.
 */
bool second_level_fill_private(struct second_level_vcpu *vcpu, u64 gpa, u32 flags);

/*
 * Adds a vCPU of the calling process, or removes a vCPU that will not run any more, if it was
 * added. Called in process context; both may sleep. second_level_add_vcpu() returns 0, -ENOMEM, or
 * -ENOSPC: there are KICK_VCPUS already.
 */
int second_level_add_vcpu(struct second_level *space, struct second_level_vcpu *vcpu);
void second_level_remove_vcpu(struct second_level_vcpu *vcpu);

/* Returns the value for the processor: nCR3, or the EPT pointer. For any context. */
u64 second_level_root(const struct second_level_vcpu *vcpu);

/* The next entry flushes the TLB tag. Called by the vCPU's thread. */
static inline void second_level_flush(struct second_level_vcpu *vcpu)
{
	vcpu->flush = true;
}

/*
 * The vCPU has come to another CPU; interrupts are off. SVM takes a fresh tag there. The
 * entries that a mirror leaves in a TLB are tagged with the root of the address space's
 * tree; this CPU may have such entries from an earlier stay, or from another tree whose
 * root was on the same page.
 */
static inline void second_level_migrated(struct second_level_vcpu *vcpu)
{
	lockdep_assert_irqs_disabled();
	if (static_branch_unlikely(&second_level_mirrored))
		vcpu->flush = true;
}

/*
 * Prepares the second level for an entry: marks the vCPU to be in the guest, if changes of
 * memory kick vCPUs, and copies the top level again after a change. Returns whether the entry
 * must flush the TLB tag. Called once for each entry, right before it, with interrupts off until
 * second_level_leave(), which follows the exit.
 *
 * If the second level is mirrored, the mirror counts what it drops, and kicks
 * (mirror.c). If it is shared, entries of the guest's tag are combined translations:
 * the guest's page table with the process's. They become stale when the kernel
 * changes the latter. The kernel counts such changes in context.tlb_gen, before it
 * tells the CPUs in mm_cpumask() by IPI, and frees no page before all of them have
 * answered. The tag is a TLB of this mm like any other, so the kernel's own rule
 * (switch_mm_irqs_off()) holds for it:
 *  - A change before the read below is seen in the count: flush.
 *  - A change after the read sends an IPI, since this CPU has the mm loaded and is
 *    not lazy. Interrupts are off until the guest runs, and in the guest an interrupt
 *    is an exit. The next entry comes through here again.
 *  - While this thread is off the CPU the tag is not in use.
 * So no mmu notifier is needed there, and a change of its mappings costs a Dune
 * process what it costs any process. Only if the kernel flushes without IPIs does a
 * notifier count, too, and kick the vCPUs (shootdown.c). Both counts only grow, so
 * their sum is unchanged only if both are.
 */
static __always_inline bool second_level_enter(struct second_level_vcpu *vcpu)
{
	u64 tlb_gen;

	if (static_branch_unlikely(&second_level_kicks))
		kick_enter(&vcpu->kick);
	if (static_branch_unlikely(&second_level_mirrored)) {
		tlb_gen = mirror_generation(vcpu->space->mirror);
	} else {
		tlb_gen = atomic64_read(&current->mm->context.tlb_gen);
		if (static_branch_unlikely(&second_level_kicks))
			tlb_gen += shootdown_generation(vcpu->space->shootdown);
	}
	if (likely(tlb_gen == vcpu->tlb_gen && !vcpu->flush))
		return false;
	vcpu->flush = false;
	vcpu->tlb_gen = tlb_gen;
	if (vcpu->root.table)
		root_refresh(&vcpu->root);
	return true;
}

/* The opposite of second_level_enter(): the guest was left. Interrupts are off. */
static __always_inline void second_level_leave(struct second_level_vcpu *vcpu)
{
	if (static_branch_unlikely(&second_level_kicks))
		kick_leave(&vcpu->kick);
}

/*
 * Finds the process's address of a guest-physical one. Returns false if there is none: @gpa
 * has more than PROCESS_BITS, or the process has given the granule no address.
 * @address is then unchanged, or @gpa. For any context.
 */
static inline bool second_level_address(const struct second_level_vcpu *vcpu, u64 gpa, u64 *address)
{
	if (static_branch_unlikely(&second_level_mirrored))
		return mirror_address(vcpu->space->mirror, gpa, address);
	*address = gpa;
	return !(gpa >> PROCESS_BITS);
}

/*
 * A nested page fault at @gpa, which is @address of the process, with DUNE_FAULT_* in @flags,
 * before the process's fault handler is called. In most cases the process has the page, and only
 * the mirror lacks it.
 *
 * Called in process context; may sleep. Returns 0 to enter the guest again, -ENOMEM, or
 * -EFAULT: the process's fault handler has to decide.
 */
static inline int second_level_fill_before(struct second_level_vcpu *vcpu, u64 gpa, u64 address,
					   u32 flags)
{
	if (static_branch_unlikely(&second_level_mirrored))
		return mirror_fill(vcpu->space->mirror, vcpu->space->tree, gpa, address, flags,
				   true);
	return -EFAULT;
}

/*
 * The same fault, after the process's fault handler was called. @resolved: according to
 * the handler the guest may try again. Called in process context; may sleep. Returns whether
 * the guest may try again.
 *
 * A vCPU's own top level may lack what the kernel has, whether or not the handler
 * resolved the fault. A mirror also gets the pages around one that is read, as
 * Linux maps a file's; a page that is written first is new, and so are those around it. If
 * the kernel has taken the page away again meanwhile, or a fatal signal is
 * pending, the guest's fault comes again.
 */
static inline bool second_level_fill_after(struct second_level_vcpu *vcpu, u64 gpa,
					   u64 address, u32 flags, bool resolved)
{
	if (!static_branch_unlikely(&second_level_mirrored)) {
		root_fill(&vcpu->root, address);
		return resolved;
	}
	return resolved && mirror_fill(vcpu->space->mirror, vcpu->space->tree, gpa, address,
				       flags, !(flags & DUNE_FAULT_WRITE)) != -ENOMEM;
}

#endif /* DUNE_MEMORY_SECOND_LEVEL_H */
