/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Access to the guest's MSRs, in ring 0 (APM vol. 2, 3.2). */
#ifndef LIBDUNE_MSR_H
#define LIBDUNE_MSR_H

#include "compiler.h"

#define MSR_FS_BASE		0xc0000100
#define MSR_KERNEL_GS_BASE	0xc0000102

ALWAYS_INLINE u64 rdmsr(u32 msr)
{
	u32 lo, hi;

	__asm__ volatile("rdmsr" : "=a" (lo), "=d" (hi) : "c" (msr));
	return (u64)hi << 32 | lo;
}

ALWAYS_INLINE void wrmsr(u32 msr, u64 v)
{
	__asm__ volatile("wrmsr" : : "c" (msr), "a" ((u32)v), "d" ((u32)(v >> 32)));
}

#endif /* LIBDUNE_MSR_H */
