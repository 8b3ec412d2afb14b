// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Guest-physical addresses. On AMD they are the process's own addresses, and nothing
 * here is used (memory.h). On Intel the guest-physical space is handed out here, in
 * granules of 1 GB, to the gigabytes of the address space that page tables lead to
 * (uapi: struct dune_granule).
 *
 * These tables are the assignment; the kernel has a copy that can be late. A vCPU that a
 * host half makes is told all granules (a child after fork has its parent's tables,
 * while the kernel has none for it). Without a host half the module gives a child the
 * granules that it knows of the parent (DUNE_MAKE_CHILD). The kernel is told of any other
 * granule when it reports the first access as a fault. So assigning one takes no system
 * call, and can be done anywhere: in ring 0 on the way into a page fault, in the host
 * half, before there is a vCPU.
 *
 * A granule is never taken back: entries that cannot be found may lead to it.
 */
#include "linux.h"
#include "place.h"
#include "syscall.h"

/*
 * While FEW_GRANULES or fewer are handed out (number 0, which is no granule of the process, counts
 * as one), the granule of a gigabyte is looked for in dune_process.few_gigabytes, and neither table
 * is used. So most programs touch no page of the two. In dune_granule_of each gigabyte would touch
 * a page of its own, if it is far from the others, and twice, as the page is read before it is
 * written.
 *
 * A page fault is handled here on the stack of the fault's entry, where nothing may fault. So no
 * page of the tables is accessed that dune_page_need() did not add: a gigabyte without a granule
 * then gets none, and the process ends by SIGBUS.
 */

/* The gigabyte of each granule in use from FEW_GRANULES on: gigabyte(). */
u32 dune_gigabyte_of[GRANULES_MAX];
/* The granule of each gigabyte of the process, or 0. */
u16 dune_granule_of[GIGABYTES];

/* Protects both tables and dune_process.granules_used. */
static struct dune_lock *const lock = &dune_process.locks[LOCK_GRANULES];

/* Called once, before all other functions of this file. @granules: of dune_info. */
void dune_granule_init(u32 granules)
{
	if (granules > GRANULES_MAX)
		granules = GRANULES_MAX;
	dune_process.granules = granules;
	dune_process.granules_used = 1;
}

/* Returns the place of the gigabyte of granule @n. */
static u32 *gigabyte(u32 n)
{
	return n < FEW_GRANULES ? &dune_process.few_gigabytes[n] : &dune_gigabyte_of[n];
}

/*
 * Returns the granule of gigabyte number @number, or 0 without one or without memory for the table.
 * Without the lock it may miss a new one.
 */
static u32 find(u64 number)
{
	u32 n, used = __atomic_load_n(&dune_process.granules_used, __ATOMIC_ACQUIRE);

	if (used > FEW_GRANULES) {
		if (!dune_page_need(&dune_granule_of[number]))
			return 0;
		return READ_ONCE(dune_granule_of[number]);
	}
	for (n = 1; n < used; n++) {
		if (dune_process.few_gigabytes[n] == number)
			return n;
	}
	return 0;
}

/* Stores the first granules in dune_granule_of. Returns whether there was memory for that. */
static bool fill_granule_of(void)
{
	u32 n;

	dune_assert_held(lock);
	for (n = 1; n < FEW_GRANULES; n++) {
		if (!dune_page_need(&dune_granule_of[*gigabyte(n)]))
			return false;
		WRITE_ONCE(dune_granule_of[*gigabyte(n)], n);
	}
	return true;
}

/*
 * Hands the next granule out to gigabyte number @number, and returns it, or 0 without memory for
 * the tables. The lock is held.
 */
static u32 hand_out(u64 number)
{
	u32 n = dune_process.granules_used;

	dune_assert_held(lock);
	if (n >= FEW_GRANULES && !(dune_page_need(&dune_gigabyte_of[n]) &&
				   dune_page_need(&dune_granule_of[number])))
		return 0;
	if (n == FEW_GRANULES && !fill_granule_of())
		return 0;
	*gigabyte(n) = number;
	/* find(), and the functions that tell the kernel, take no lock. */
	__atomic_store_n(&dune_process.granules_used, n + 1, __ATOMIC_RELEASE);
	if (n >= FEW_GRANULES)
		WRITE_ONCE(dune_granule_of[number], n);
	return n;
}

/*
 * Returns the granule of gigabyte number @number, and assigns one if it has none. Returns 0 if
 * no granule is left, or no memory for the tables.
 */
static u32 assign(u64 number)
{
	u64 flags = dune_lock(lock);
	u32 n, used = dune_process.granules_used;

	/*
	 * A vfork child that was killed between the last two stores of hand_out() has left the
	 * last granule without the second one. Otherwise this changes nothing.
	 */
	if (used > FEW_GRANULES)
		WRITE_ONCE(dune_granule_of[*gigabyte(used - 1)], used - 1);
	n = find(number);
	if (!n && used < dune_process.granules)
		n = hand_out(number);
	dune_unlock(lock, flags);
	return n;
}

/*
 * Returns the guest-physical address of @va, whose gigabyte gets a granule if it has
 * none. Returns NO_GPA if no granule is left, or if @va is not a user address.
 */
u64 dune_granule_gpa(u64 va)
{
	u64 number = va >> GB_SHIFT;
	u64 n;

	if (number >= GIGABYTES)
		return NO_GPA;
	n = find(number);
	if (unlikely(!n))
		n = assign(number);
	return n ? n << GB_SHIFT | (va & (GB - 1)) : NO_GPA;
}

/* Returns the process's address of @gpa, which dune_granule_gpa() returned. */
u64 dune_granule_va(u64 gpa)
{
	return (u64)*gigabyte((u16)(gpa >> GB_SHIFT)) << GB_SHIFT | (gpa & (GB - 1));
}

u64 dune_gpa(u64 va)
{
	return to_gpa(va);
}

u64 dune_va(u64 gpa)
{
	if (dune_process.granules && (gpa < GB || gpa >> GB_SHIFT >= dune_process.granules_used))
		return NO_GPA;
	return to_va(gpa);
}

/* Fills in how the kernel is told of granule @n. */
static void describe(u32 n, struct dune_granule *g)
{
	*g = (struct dune_granule) {
		.size = sizeof(*g),
		.guest = (u64)n << GB_SHIFT,
		.address = (u64)*gigabyte(n) << GB_SHIFT,
	};
}

/* Tells the kernel of a granule, in the host half. Returns 0 or an error. */
static long tell(int vcpu, const struct dune_granule *g)
{
	return sys3(__NR_ioctl, vcpu, DUNE_MAP_GRANULE, (long)g);
}

/* Tells the kernel of all granules, for a new vCPU, in the host half. Returns 0 or an error. */
long dune_granule_tell_all(int vcpu)
{
	u32 n, used = __atomic_load_n(&dune_process.granules_used, __ATOMIC_ACQUIRE);
	struct dune_granule g;
	long err = 0;

	for (n = 1; n < used && !err; n++) {
		describe(n, &g);
		err = tell(vcpu, &g);
	}
	return err;
}

/*
 * Fills in how the kernel is told of the granule of @gpa, which the guest accessed before the
 * kernel knew it. Returns 0, or -ENOENT if the granule is not assigned.
 */
long dune_granule_describe(u64 gpa, struct dune_granule *g)
{
	u64 n = gpa >> GB_SHIFT;

	if (!n || n >= __atomic_load_n(&dune_process.granules_used, __ATOMIC_ACQUIRE))
		return -ENOENT;
	describe(n, g);
	return 0;
}

/*
 * Tells the kernel of the granule of @gpa, which the guest accessed before the kernel knew
 * it, in the host half. Returns 0, an error, or -ENOENT if the granule is not assigned,
 * which means that a page-table entry is wrong.
 */
long dune_granule_tell(int vcpu, u64 gpa)
{
	struct dune_granule g;
	long err = dune_granule_describe(gpa, &g);

	return err ?: tell(vcpu, &g);
}
