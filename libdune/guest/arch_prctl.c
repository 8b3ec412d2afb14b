// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * arch_prctl(): the guest has its own FS and GS bases. In ring 0 GS belongs to the
 * library.
 */
#include "guest.h"

static long put_base(const struct dune_tf *tf, u64 base)
{
	return dune_put_user(tf, tf->rsi, &base, sizeof(base));
}

/* Carries out arch_prctl(). */
long dune_sys_arch_prctl(struct dune_tf *tf)
{
	u64 base = tf->rsi;

	switch ((u32)tf->rdi) {
	case ARCH_SET_FS:
		if (base >= USER_END)
			return -EPERM;
		wrmsr(MSR_FS_BASE, base);
		return 0;
	case ARCH_SET_GS:
		if (base >= USER_END || !from_ring3(tf))
			return -EPERM;
		wrmsr(MSR_KERNEL_GS_BASE, base);
		return 0;
	case ARCH_GET_FS:
		return put_base(tf, rdmsr(MSR_FS_BASE));
	case ARCH_GET_GS:
		return put_base(tf, from_ring3(tf) ? rdmsr(MSR_KERNEL_GS_BASE) : 0);
	default:
		return dune_hypercall(__NR_arch_prctl, tf->rdi, tf->rsi, 0, 0, 0, 0);
	}
}
