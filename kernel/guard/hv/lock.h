/* SPDX-License-Identifier: GPL-2.0-only */
/* A spinlock for the image. Nothing interrupts its holder: GIF is clear. */
#ifndef GUARD_HV_LOCK_H
#define GUARD_HV_LOCK_H

#include <linux/types.h>

static inline void hv_lock(u8 *lock)
{
	while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE))
		asm volatile("pause");
}

static inline void hv_unlock(u8 *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

#endif /* GUARD_HV_LOCK_H */
