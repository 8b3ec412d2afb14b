// SPDX-License-Identifier: MIT OR Apache-2.0
/* Locks. lock.h describes their order, and how fork and vfork treat them. */
#include <asm/unistd_64.h>
#include "process.h"

/*
 * Returns the number of the calling thread. In the guest (@active) GDTR leads to the block,
 * whatever GS is. In the host half the stack does, which is in the block and so in the arena.
 * A thread in dune_enter(), or one that has not entered, has no block. Its stack does not tell it
 * from others, since small stacks share 64 KB.
 */
ALWAYS_INLINE u32 own_holder(bool active)
{
	const void *stack = __builtin_frame_address(0);
	struct {
		u16 limit;
		u64 base;
	} __packed gdtr;

	if (!active)
		return dune_in_arena(stack) ? dune_lock_holder(stack) : HOLDER_OUTSIDE;
	__asm__ volatile("sgdt %0" : "=m" (gdtr));
	return dune_lock_holder((void *)gdtr.base);
}

/* Asserts that @holder holds neither @l nor a lock that comes after it. */
static void assert_order(const struct dune_lock *l, u32 holder)
{
	const struct dune_lock *first = dune_process.locks, *end = first + LOCKS;

	if (holder == HOLDER_OUTSIDE)
		return;
	if (l < first || l >= end) {		/* that of a struct dune_sighand */
		if (READ_ONCE(l->holder) == holder)
			__builtin_trap();
		l = first;
	}
	for (; l < end; l++) {
		if (unlikely(READ_ONCE(l->holder) == holder))
			__builtin_trap();
	}
}

u64 dune_lock(struct dune_lock *l)
{
	bool active = dune_active();
	u64 flags = active ? dune_irq_save() : 0;
	u32 holder = own_holder(active), nobody = 0;

	assert_order(l, holder);
	while (unlikely(!__atomic_compare_exchange_n(&l->holder, &nobody, holder, false,
						     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))) {
		nobody = 0;
		__builtin_ia32_pause();
	}
	return flags;
}

void dune_unlock(struct dune_lock *l, u64 flags)
{
	__atomic_store_n(&l->holder, 0, __ATOMIC_RELEASE);
	dune_irq_restore(flags);
}

void dune_unlock_and_exit(struct dune_lock *l, long status)
{
	__asm__ volatile("movl $0, %0; syscall; ud2"
			 : "=m" (l->holder)
			 : "a" (__NR_exit), "D" (status)
			 : "rcx", "r11", "memory");
	__builtin_unreachable();
}
